-- The tables of the load: rows that each client knows (load.c), and accounts between which pgbench moves money.
-- Variable: method, the access method of their indexes.
SET client_min_messages = warning;
DROP TABLE IF EXISTS load, accounts, history;
CREATE TABLE load (id bigint PRIMARY KEY, key bigint NOT NULL, name text NOT NULL);
CREATE INDEX load_key ON load USING :method (key);
CREATE INDEX load_name ON load USING :method (name);
CREATE TABLE accounts (id int NOT NULL, balance bigint NOT NULL DEFAULT 0);
INSERT INTO accounts SELECT generate_series(1, 10000);
CREATE INDEX accounts_id ON accounts USING :method (id);
CREATE TABLE history (id int, delta int);
ANALYZE load, accounts;
