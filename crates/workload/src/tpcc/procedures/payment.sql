-- Payment (clause 2.5.2) in one call. A customer is named by number, or by last name where the
-- number is NULL: then it is the one at position n/2, rounded up, of the n with that name.
CREATE OR REPLACE FUNCTION pgdyno_payment(
  p_warehouse integer, p_district integer, p_customer_warehouse integer,
  p_customer_district integer, p_customer integer, p_last_name text, p_amount numeric,
  p_paid timestamp,
  OUT w_street_1 text, OUT w_street_2 text, OUT w_city text, OUT w_state text, OUT w_zip text,
  OUT d_street_1 text, OUT d_street_2 text, OUT d_city text, OUT d_state text, OUT d_zip text,
  OUT c_id integer, OUT c_first text, OUT c_middle text, OUT c_last text, OUT c_street_1 text,
  OUT c_street_2 text, OUT c_city text, OUT c_state text, OUT c_zip text, OUT c_phone text,
  OUT c_since timestamp, OUT c_credit text, OUT c_credit_lim numeric, OUT c_discount numeric,
  OUT c_balance numeric, OUT c_data text
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  warehouse_name text;
  district_name text;
  namesakes integer[];
BEGIN
  UPDATE {warehouse} SET w_ytd = w_ytd + p_amount WHERE w_id = p_warehouse
  RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip
  INTO STRICT warehouse_name, w_street_1, w_street_2, w_city, w_state, w_zip;

  UPDATE {district} SET d_ytd = d_ytd + p_amount
  WHERE d_w_id = p_warehouse AND d_id = p_district
  RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip
  INTO STRICT district_name, d_street_1, d_street_2, d_city, d_state, d_zip;

  IF p_customer IS NULL THEN
    SELECT array_agg(c_id ORDER BY c_first) INTO namesakes FROM {customer}
    WHERE c_w_id = p_customer_warehouse AND c_d_id = p_customer_district AND c_last = p_last_name;
    p_customer := namesakes[(cardinality(namesakes) + 1) / 2];
  END IF;

  UPDATE {customer} SET
    c_balance = c_balance - p_amount,
    c_ytd_payment = c_ytd_payment + p_amount,
    c_payment_cnt = c_payment_cnt + 1,
    c_data = CASE c_credit WHEN 'BC' THEN left(concat_ws(' ', c_id, c_d_id, c_w_id, p_district,
      p_warehouse, p_amount, c_data), 500) ELSE c_data END
  WHERE c_w_id = p_customer_warehouse AND c_d_id = p_customer_district AND c_id = p_customer
  RETURNING c_id, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip,
    c_phone, c_since, c_credit, c_credit_lim, c_discount, c_balance,
    CASE c_credit WHEN 'BC' THEN left(c_data, 200) END
  INTO STRICT c_id, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip,
    c_phone, c_since, c_credit, c_credit_lim, c_discount, c_balance, c_data;

  INSERT INTO {history} (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
  VALUES (p_customer, p_customer_district, p_customer_warehouse, p_district, p_warehouse, p_paid,
    p_amount, warehouse_name || '    ' || district_name);
END $$
