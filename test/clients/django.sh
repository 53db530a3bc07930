# Django: a project whose migrations make sherman indexes, forward and backward, its own tables beside them, and its ORM over both.
mkdir -p site/shop/migrations
cd site
touch shop/__init__.py shop/migrations/__init__.py
cat >settings.py <<PYTHON
import os
SECRET_KEY = "test"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions", "django.contrib.postgres", "shop"]
DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", "NAME": os.environ["PGDATABASE"], "HOST": "/tmp", "USER": "postgres",
                         "OPTIONS": {"options": os.environ.get("SETTINGS", "")}}}
PYTHON
cat >shop/indexes.py <<PYTHON
from django.contrib.postgres.indexes import PostgresIndex


class ShermanIndex(PostgresIndex):
    """CREATE INDEX ... USING sherman. Django makes the access method of the suffix."""
    suffix = "sherman"

    def __init__(self, *expressions, fillfactor=None, **kwargs):
        self.fillfactor = fillfactor
        super().__init__(*expressions, **kwargs)

    def deconstruct(self):
        path, args, kwargs = super().deconstruct()
        if self.fillfactor is not None:
            kwargs["fillfactor"] = self.fillfactor
        return path, args, kwargs

    def get_with_params(self):
        return [] if self.fillfactor is None else [f"fillfactor = {self.fillfactor}"]
PYTHON
cat >shop/models.py <<PYTHON
import uuid
from django.contrib.auth.models import User
from django.db import models
from django.db.models.functions import Lower
from .indexes import ShermanIndex


class Article(models.Model):
    number = models.UUIDField(default=uuid.uuid4)
    title = models.CharField(max_length=80)
    price = models.DecimalField(max_digits=10, decimal_places=2)
    owner = models.ForeignKey(User, on_delete=models.CASCADE, db_index=False, null=True)
    tags = models.ManyToManyField("Tag")

    class Meta:
        indexes = [ShermanIndex(fields=["number"], name="article_number"), ShermanIndex(fields=["owner", "-price"], name="article_owner", fillfactor=80),
                   ShermanIndex(Lower("title"), name="article_title"),
                   ShermanIndex(fields=["price"], name="article_cheap", condition=models.Q(price__lt=10), include=["title"])]


class Tag(models.Model):
    name = models.CharField(max_length=40, unique=True)
PYTHON
export DJANGO_SETTINGS_MODULE=settings PYTHONPATH=.
django-admin makemigrations shop
django-admin migrate
is 'what is left to migrate' "$(django-admin makemigrations --check --dry-run | head -n 1)" 'No changes detected'
cat >work.py <<PYTHON
import django
django.setup()
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import F
from shop.models import Article, Tag
users = [User.objects.create_user(f"user{n}") for n in range(3)]
tags = Tag.objects.bulk_create(Tag(name=f"tag {n}") for n in range(20))
articles = Article.objects.bulk_create(Article(title=f"Title {n % 50}", price=n % 40, owner=users[n % 3]) for n in range(2000))
for article in articles[:200]:
    article.tags.add(*tags[:3])
Article.objects.filter(price__gte=30).update(price=F("price") / 2)
Article.objects.filter(owner=users[2]).delete()
assert Article.objects.filter(title__iexact="title 7").count() == len([a for a in Article.objects.all() if a.title == "Title 7"])
assert Article.objects.get(number=articles[0].number).pk == articles[0].pk
assert list(Article.objects.filter(price__lt=10).order_by("price").values_list("price", flat=True)) == sorted(a.price for a in Article.objects.all() if a.price < 10)
assert Tag.objects.get_or_create(name="tag 1")[1] is False
try:
    with transaction.atomic():
        Tag.objects.create(name="tag 2")
    raise SystemExit("a duplicate was let in")
except IntegrityError:
    pass
Tag.objects.bulk_create([Tag(name="tag 2"), Tag(name="new")], ignore_conflicts=True)
assert Tag.objects.count() == 21
PYTHON
python3 work.py
verify 4
# The setting for all that Django makes: models that reference each other want a key of btree's up to PostgreSQL 17, and the message says so.
createdb django_setting
psql -qX -d django_setting -c 'CREATE EXTENSION sherman'
export PGDATABASE=django_setting SETTINGS='-c sherman.constraints=on'
fails_with 'HINT: .*sherman.constraints = off' django-admin migrate
export PGDATABASE=client_django
unset SETTINGS
# One of unique = True, by hand, as an operator would: RunSQL in a migration of its own.
cat >shop/migrations/0002_tag.py <<PYTHON
from django.db import migrations
class Migration(migrations.Migration):
    dependencies = [("shop", "0001_initial")]
    operations = [migrations.RunSQL(
        "ALTER TABLE shop_tag DROP CONSTRAINT shop_tag_name_key, ADD CONSTRAINT shop_tag_name_key UNIQUE (name) WITH (sherman)",
        "ALTER TABLE shop_tag DROP CONSTRAINT shop_tag_name_key, ADD CONSTRAINT shop_tag_name_key UNIQUE (name) WITH (sherman = off)")]
PYTHON
django-admin migrate
verify 5
django-admin migrate shop 0001
verify 4
django-admin migrate
# Concurrently, outside of a transaction.
cat >shop/migrations/0003_concurrently.py <<PYTHON
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations
from shop.indexes import ShermanIndex
class Migration(migrations.Migration):
    atomic = False
    dependencies = [("shop", "0002_tag")]
    operations = [AddIndexConcurrently("article", ShermanIndex(fields=["title"], name="article_title_2"))]
PYTHON
django-admin migrate
django-admin inspectdb shop_article >/dev/null
verify 6
django-admin migrate shop zero
is 'indexes of an app that is gone' "$(sql "SELECT count(*) FROM sherman_stat_indexes")" 0
django-admin migrate
