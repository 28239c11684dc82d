-- Order-Status (clause 2.6.2) in one call. STABLE: its queries see one snapshot, that of the call
-- (clause 3.4.1). A customer is named as in pgdyno_payment.
CREATE OR REPLACE FUNCTION pgdyno_order_status(
  p_warehouse integer, p_district integer, p_customer integer, p_last_name text,
  OUT c_id integer, OUT c_balance numeric, OUT c_first text, OUT c_middle text, OUT c_last text,
  OUT o_id integer, OUT o_entry_d timestamp, OUT o_carrier_id integer,
  OUT items integer[], OUT supplies integer[], OUT quantities integer[], OUT amounts numeric[],
  OUT delivered timestamp[]
) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
  namesakes integer[];
BEGIN
  IF p_customer IS NULL THEN
    SELECT array_agg(c_id ORDER BY c_first) INTO namesakes FROM {customer}
    WHERE c_w_id = p_warehouse AND c_d_id = p_district AND c_last = p_last_name;
    p_customer := namesakes[(cardinality(namesakes) + 1) / 2];
  END IF;

  SELECT c_id, c_balance, c_first, c_middle, c_last
  INTO STRICT c_id, c_balance, c_first, c_middle, c_last
  FROM {customer} WHERE c_w_id = p_warehouse AND c_d_id = p_district AND c_id = p_customer;

  SELECT o_id, o_entry_d, o_carrier_id INTO STRICT o_id, o_entry_d, o_carrier_id FROM {orders}
  WHERE o_w_id = p_warehouse AND o_d_id = p_district AND o_c_id = p_customer
  ORDER BY o_id DESC LIMIT 1;

  SELECT array_agg(ol_i_id), array_agg(ol_supply_w_id), array_agg(ol_quantity),
    array_agg(ol_amount), array_agg(ol_delivery_d)
  INTO items, supplies, quantities, amounts, delivered
  FROM {order_line}
  WHERE ol_w_id = p_warehouse AND ol_d_id = p_district
    AND ol_o_id = pgdyno_order_status.o_id;
END $$
