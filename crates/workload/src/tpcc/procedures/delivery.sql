-- Delivery (clause 2.7.4) in one call: the ten districts in ascending order, then everything that
-- they deliver at once. Returns how many districts had nothing to deliver.
CREATE OR REPLACE FUNCTION pgdyno_delivery(
  p_warehouse integer, p_carrier integer, p_delivered timestamp, OUT skipped integer
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  oldest integer;
  districts integer[] := '{}';
  numbers integer[] := '{}';
  paying integer;
BEGIN
  FOR this_district IN 1..10 LOOP
    DELETE FROM {new_order}
    WHERE no_w_id = p_warehouse AND no_d_id = this_district AND no_o_id =
      (SELECT no_o_id FROM {new_order} WHERE no_w_id = p_warehouse AND no_d_id = this_district
       ORDER BY no_o_id LIMIT 1 FOR UPDATE)
    RETURNING no_o_id INTO oldest;
    IF FOUND THEN
      districts := districts || this_district;
      numbers := numbers || oldest;
    END IF;
  END LOOP;

  WITH ordered AS (
    UPDATE {orders} SET o_carrier_id = p_carrier
    FROM unnest(districts, numbers) AS taken (district, number)
    WHERE o_w_id = p_warehouse AND o_d_id = district AND o_id = number
    RETURNING o_d_id, o_c_id
  ), line AS (
    UPDATE {order_line} SET ol_delivery_d = p_delivered
    FROM unnest(districts, numbers) AS taken (district, number)
    WHERE ol_w_id = p_warehouse AND ol_d_id = district AND ol_o_id = number
    RETURNING ol_d_id, ol_amount
  ), due AS (
    SELECT ol_d_id, sum(ol_amount) AS amount FROM line GROUP BY ol_d_id
  )
  UPDATE {customer} SET c_balance = c_balance + amount, c_delivery_cnt = c_delivery_cnt + 1
  FROM ordered JOIN due ON ol_d_id = o_d_id
  WHERE c_w_id = p_warehouse AND c_d_id = o_d_id AND c_id = o_c_id;

  GET DIAGNOSTICS paying = ROW_COUNT;
  IF paying <> cardinality(numbers) THEN
    RAISE EXCEPTION 'of % orders only % have lines and a customer', cardinality(numbers), paying
      USING ERRCODE = 'no_data_found';
  END IF;
  skipped := 10 - cardinality(numbers);
END $$
