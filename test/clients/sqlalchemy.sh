# SQLAlchemy: tables with sherman indexes of all kinds, its ORM and its ON CONFLICT over them, and what its inspector says of them.
python3 "$HERE/sqlalchemy_client.py"
verify 7
