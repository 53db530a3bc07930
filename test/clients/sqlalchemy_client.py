"""The SQLAlchemy client: sqlalchemy.sh runs it."""
import os
import uuid

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.orm import Session, declarative_base, relationship

URL = f"postgresql+psycopg2://postgres@/{os.environ['PGDATABASE']}?host=/tmp"
Base = declarative_base()


class Customer(Base):
    __tablename__ = "customer"
    # A foreign key references it, which up to PostgreSQL 17 wants a btree index.
    id = sa.Column(sa.BigInteger, primary_key=True)
    mail = sa.Column(sa.Text, nullable=False)
    name = sa.Column(sa.Text)
    orders = relationship("Order", back_populates="customer")
    __table_args__ = (sa.Index("customer_mail", "mail", unique=True, postgresql_using="sherman"),
                      sa.Index("customer_lower", sa.text("lower(name)"), postgresql_using="sherman"))


class Order(Base):
    __tablename__ = "orders"
    id = sa.Column(pg.UUID(as_uuid=True), primary_key=True, default=uuid.uuid4)
    customer_id = sa.Column(sa.ForeignKey("customer.id", ondelete="CASCADE"), nullable=False)
    state = sa.Column(sa.Enum("new", "paid", "sent", name="order_state"), nullable=False, server_default="new")
    total = sa.Column(sa.Numeric(12, 2), nullable=False)
    customer = relationship("Customer", back_populates="orders")
    __table_args__ = (sa.Index("orders_customer", "customer_id", postgresql_using="sherman"),
                      sa.Index("orders_state", "state", sa.desc("total"), postgresql_using="sherman"),
                      sa.Index("orders_open", "total", postgresql_using="sherman", postgresql_where=sa.text("state = 'new'"),
                               postgresql_include=["customer_id"], postgresql_with={"fillfactor": 70}))


engine = sa.create_engine(URL)
with engine.begin() as connection:
    # The customers' key is btree's, as orders reference it; all that is made afterwards is sherman's.
    Customer.__table__.create(connection)
    connection.execute(sa.text("SET sherman.constraints = on"))
    Order.__table__.create(connection)
    connection.execute(sa.text("RESET sherman.constraints"))

with Session(engine) as session:
    session.add_all(Customer(id=n, mail=f"{n}@example.org", name=f"Name {n % 97}") for n in range(1000))
    session.flush()
    session.add_all(Order(customer_id=n % 1000, total=n * 7 % 1000) for n in range(5000))
    session.commit()
    for order in session.query(Order).filter(Order.total > 900).order_by(Order.total.desc()).limit(200):
        order.state = "paid"
    session.commit()
    session.execute(sa.delete(Customer).where(Customer.id % 10 == 3))
    session.commit()
    insert = pg.insert(Customer).values([{"id": n, "mail": f"{n}@example.org", "name": "again"} for n in range(995, 1005)])
    session.execute(insert.on_conflict_do_update(index_elements=["mail"], set_={"name": insert.excluded.name}))
    session.execute(pg.insert(Customer).values(id=2000, mail="1@example.org").on_conflict_do_nothing())
    session.commit()
    assert session.query(Customer).filter(Customer.name == "again").count() == 10
    assert session.query(Order).join(Customer).filter(Customer.mail == "1@example.org").count() == 5
    session.add(Customer(id=3000, mail="2@example.org"))
    try:
        session.flush()
        raise SystemExit("a duplicate was let in")
    except IntegrityError as error:
        assert error.orig.pgcode == "23505" and error.orig.diag.constraint_name == "customer_mail", error
        session.rollback()
    with session.begin_nested():
        session.add(Customer(id=3001, mail="3001@example.org"))
    session.commit()

# What its inspector says: the access method, the columns and the options, as of any index.
found = {index["name"]: index for index in sa.inspect(engine).get_indexes("orders")}
assert found["orders_customer"]["dialect_options"]["postgresql_using"] == "sherman", found
assert found["orders_open"]["dialect_options"]["postgresql_with"]["fillfactor"] == "70", found
assert found["orders_open"]["dialect_options"]["postgresql_include"] == ["customer_id"], found
assert sa.inspect(engine).get_pk_constraint("orders")["constrained_columns"] == ["id"]
reflected = sa.MetaData()
reflected.reflect(engine)
assert {index.name for index in reflected.tables["customer"].indexes} >= {"customer_mail"}
with engine.connect() as connection:
    method = connection.execute(sa.text("SELECT amname FROM pg_class i JOIN pg_am a ON a.oid = relam WHERE i.relname = 'orders_pkey'")).scalar()
    assert method == "sherman", method

# An ORM that makes foreign keys, under the setting: what it is told.
with engine.connect() as connection:
    connection.execute(sa.text("SET sherman.constraints = on"))
    connection.execute(sa.text("CREATE TABLE parent (id int PRIMARY KEY)"))
    try:
        connection.execute(sa.text("CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent)"))
        raise SystemExit("a foreign key references a sherman key")
    except DBAPIError as error:
        assert error.orig.pgcode == "0A000", error.orig.pgcode
        assert "sherman = off" in error.orig.diag.message_hint, error.orig.diag.message_hint
