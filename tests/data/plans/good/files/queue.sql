CREATE TABLE queue (id bigint PRIMARY KEY, state int NOT NULL);
INSERT INTO queue SELECT id, 0 FROM generate_series(1, 1000) id;
