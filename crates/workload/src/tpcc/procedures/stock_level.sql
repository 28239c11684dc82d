-- Stock-Level (clause 2.8.2) in one call. STABLE: both queries see one snapshot, which is more than
-- the text asks for.
CREATE OR REPLACE FUNCTION pgdyno_stock_level(
  p_warehouse integer, p_district integer, p_threshold integer, OUT low bigint
) LANGUAGE plpgsql STABLE AS $$
DECLARE
  next_order integer;
BEGIN
  SELECT d_next_o_id INTO STRICT next_order FROM {district}
  WHERE d_w_id = p_warehouse AND d_id = p_district;

  SELECT count(*) INTO low
  FROM (SELECT DISTINCT ol_i_id FROM {order_line}
    WHERE ol_w_id = p_warehouse AND ol_d_id = p_district
      AND ol_o_id >= next_order - 20 AND ol_o_id < next_order) AS recent
  JOIN {stock} ON s_w_id = p_warehouse AND s_i_id = ol_i_id
  WHERE s_quantity < p_threshold;
END $$
