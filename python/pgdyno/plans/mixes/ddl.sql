CREATE TABLE done (request_id bigint NOT NULL, what text NOT NULL);
CREATE TABLE kept (request_id bigint NOT NULL, n int NOT NULL, filler text NOT NULL);
CREATE INDEX ON kept (request_id);
CREATE TABLE counter (id int PRIMARY KEY, n bigint NOT NULL);
INSERT INTO counter SELECT id, 0 FROM generate_series(1, 100) AS id;
CREATE TABLE made (name text PRIMARY KEY, rows bigint NOT NULL);

CREATE FUNCTION ddl_rows(name text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE found bigint;
BEGIN
  EXECUTE format('SELECT count(*) FROM %I', name) INTO found;
  RETURN found;
END $$;

-- A table that nobody else changes now; none: every one is being changed, or there is none.
CREATE FUNCTION ddl_any(request bigint) RETURNS text LANGUAGE sql AS $$
  SELECT name FROM made ORDER BY md5(name || request) FOR UPDATE SKIP LOCKED LIMIT 1
$$;

CREATE FUNCTION ddl_create(request bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE name text := 'scratch_' || request;
BEGIN
  EXECUTE format('CREATE TABLE %I (n int PRIMARY KEY, filler text NOT NULL)', name);
  EXECUTE format('INSERT INTO %I SELECT n, repeat(''x'', 100) FROM generate_series(1, 200) AS n', name);
  INSERT INTO made VALUES (name, 200);
  INSERT INTO done VALUES (request, 'create');
END $$;

CREATE FUNCTION ddl_drop(request bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE chosen text := ddl_any(request);
BEGIN
  IF chosen IS NOT NULL THEN
    EXECUTE format('DROP TABLE %I', chosen);
    DELETE FROM made WHERE name = chosen;
  END IF;
  INSERT INTO done VALUES (request, 'drop');
END $$;

CREATE FUNCTION ddl_truncate(request bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE chosen text := ddl_any(request);
BEGIN
  IF chosen IS NOT NULL THEN
    EXECUTE format('TRUNCATE %I', chosen);
    EXECUTE format('INSERT INTO %I (n, filler) VALUES (1, ''a''), (2, ''b'')', chosen);
    UPDATE made SET rows = 2 WHERE name = chosen;
  END IF;
  INSERT INTO done VALUES (request, 'truncate');
END $$;

-- A type that needs other bytes has the table written anew.
CREATE FUNCTION ddl_alter(request bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE chosen text := ddl_any(request);
BEGIN
  IF chosen IS NOT NULL THEN
    EXECUTE format('ALTER TABLE %I ADD COLUMN %I int DEFAULT 7, ALTER COLUMN n TYPE %s', chosen,
                   'added_' || request, CASE WHEN request % 2 = 0 THEN 'bigint' ELSE 'int' END);
  END IF;
  INSERT INTO done VALUES (request, 'alter');
END $$;

CREATE FUNCTION ddl_index(request bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE chosen text := ddl_any(request);
BEGIN
  IF chosen IS NOT NULL THEN
    EXECUTE format('CREATE INDEX ON %I (filler, n)', chosen);
  END IF;
  INSERT INTO done VALUES (request, 'index');
END $$;
