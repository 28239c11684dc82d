-- New-Order (clause 2.4.2) in one call. The lines come in the order in which their stock is locked:
-- a nested loop takes them as they stand in the arrays. An item that is ordered k times has its
-- k-th line in pass k, because UPDATE ... FROM touches a row once. An item that does not exist has
-- no row in "taken": then all the other lines are entered, and all is rolled back, by the procedure
-- itself, without an error and without a savepoint.
CREATE OR REPLACE PROCEDURE pgdyno_new_order(
  p_warehouse integer, p_district integer, p_customer integer, p_entered timestamp,
  p_all_local integer, p_numbers integer[], p_items integer[], p_supplies integer[],
  p_quantities integer[], p_passes integer[], p_last_pass integer,
  INOUT o_id integer, INOUT w_tax numeric, INOUT d_tax numeric, INOUT c_discount numeric,
  INOUT c_last text, INOUT c_credit text, INOUT numbers integer[], INOUT names text[],
  INOUT prices numeric[], INOUT quantities integer[], INOUT brands integer[]
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  UPDATE {district} SET d_next_o_id = d_next_o_id + 1
  WHERE d_w_id = p_warehouse AND d_id = p_district
  RETURNING d_next_o_id - 1, d_tax INTO STRICT o_id, d_tax;

  SELECT w_tax, c_discount, c_last, c_credit INTO STRICT w_tax, c_discount, c_last, c_credit
  FROM {warehouse}, {customer}
  WHERE w_id = p_warehouse AND c_w_id = p_warehouse AND c_d_id = p_district AND c_id = p_customer;

  INSERT INTO {orders} (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
  VALUES (pgdyno_new_order.o_id, p_district, p_warehouse, p_customer, p_entered,
    cardinality(p_items), p_all_local);
  INSERT INTO {new_order} (no_o_id, no_d_id, no_w_id)
  VALUES (pgdyno_new_order.o_id, p_district, p_warehouse);

  FOR this_pass IN 1..p_last_pass LOOP
    WITH taken AS (
      UPDATE {stock} SET
        s_quantity = CASE WHEN s_quantity >= quantity + 10 THEN s_quantity - quantity
          ELSE s_quantity - quantity + 91 END,
        s_ytd = s_ytd + quantity,
        s_order_cnt = s_order_cnt + 1,
        s_remote_cnt = s_remote_cnt + (supply <> p_warehouse)::integer
      FROM unnest(p_numbers, p_items, p_supplies, p_quantities, p_passes)
        AS line (number, ordered, supply, quantity, pass)
      JOIN {item} ON i_id = ordered
      WHERE pass = this_pass AND s_w_id = supply AND s_i_id = ordered
      RETURNING number, ordered, supply, quantity, s_quantity, i_name, i_price,
        (i_data LIKE '%ORIGINAL%' AND s_data LIKE '%ORIGINAL%')::integer AS brand,
        CASE p_district WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03
          WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06
          WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09
          ELSE s_dist_10 END AS info
    ), entered AS (
      INSERT INTO {order_line} (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id,
        ol_quantity, ol_amount, ol_dist_info)
      SELECT pgdyno_new_order.o_id, p_district, p_warehouse, number, ordered, supply, quantity,
        quantity * i_price, info
      FROM taken
    )
    SELECT numbers || array_agg(number), names || array_agg(i_name::text),
      prices || array_agg(i_price), quantities || array_agg(s_quantity),
      brands || array_agg(brand)
    INTO numbers, names, prices, quantities, brands
    FROM taken;
  END LOOP;

  IF coalesce(cardinality(numbers), 0) < cardinality(p_items) THEN
    ROLLBACK;
  END IF;
END $$
