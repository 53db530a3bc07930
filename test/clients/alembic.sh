# Alembic: a migration that it writes by itself, up, down and up again; a second look of its finds no difference, and one behind a change does.
export ALEMBIC_URL="postgresql+psycopg2://postgres@/$PGDATABASE?host=/tmp"
alembic init migrations
cat >migrations/env.py <<PYTHON
import logging.config, os, sys
from alembic import context
from sqlalchemy import create_engine
sys.path.insert(0, os.getcwd())
import models
logging.config.fileConfig(context.config.config_file_name)
with create_engine(os.environ["ALEMBIC_URL"]).connect() as connection:
    context.configure(connection=connection, target_metadata=models.Base.metadata)
    with context.begin_transaction():
        context.run_migrations()
PYTHON
cat >models.py <<PYTHON
import sqlalchemy as sa
from sqlalchemy.orm import declarative_base
Base = declarative_base()
class Event(Base):
    __tablename__ = "event"
    id = sa.Column(sa.BigInteger, primary_key=True)
    kind = sa.Column(sa.Text, index=False)
    at = sa.Column(sa.DateTime(timezone=True))
    __table_args__ = (sa.Index("event_kind", "kind", "at", postgresql_using="sherman"),
                      sa.Index("event_at", sa.desc("at"), postgresql_using="sherman", postgresql_with={"fillfactor": 80}))
PYTHON
# differences: what a look of Alembic's finds.
differences()
{
	alembic revision --autogenerate -m look 2>&1 | tee look.log | grep -E 'autogenerate.compare. Detected|ERROR' || true
	rm -f migrations/versions/*_look.py
}

sql "ALTER DATABASE \"$PGDATABASE\" SET sherman.constraints = on"
alembic revision --autogenerate -m first
grep -c "postgresql_using='sherman'" migrations/versions/*_first.py
alembic upgrade head
sql "INSERT INTO event SELECT n, 'kind ' || n % 5, now() - n * interval '1 minute' FROM generate_series(1, 2000) n"
verify 3
is 'differences behind the migration' "$(differences)" ''
alembic downgrade base
is 'indexes behind the way back' "$(sql 'SELECT count(*) FROM sherman_stat_indexes')" "$(sql "SELECT count(*) FROM pg_class WHERE relname = 'alembic_version_pkc'")"
alembic upgrade head
sql "INSERT INTO event SELECT n, 'kind ' || n % 5, now() - n * interval '1 minute' FROM generate_series(1, 2000) n"
sed -i 's/__table_args__ = (/&sa.Index("event_id_kind", "id", "kind", unique=True, postgresql_using="sherman"), /' models.py
is 'differences behind a change' "$(differences | sed 's/.*Detected //')" "added index 'event_id_kind' on '['id', 'kind']'"
alembic revision --autogenerate -m second
alembic upgrade head
verify 4
# Without a transaction, beside others: as its cookbook has it.
alembic revision -m third
sed -i "s/^def upgrade.*/&\n    with op.get_context().autocommit_block():\n        op.create_index('event_c', 'event', ['kind'], postgresql_using='sherman', postgresql_concurrently=True)/" migrations/versions/*_third.py
alembic upgrade head
verify 5
