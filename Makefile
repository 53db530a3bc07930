# sherman: a PostgreSQL index access method whose nodes live in the memory of memory nodes.
#
#	make, make install, make installcheck		as every PGXS extension; CC=clang works
#	make msd, make install-msd					the memory node's daemon alone, without PostgreSQL: prefix=/usr/local, DESTDIR
#	make ASSERTS=1								for tests, as script/test does: with assertions, crash points and the fault layer
#	make -C test check							the C tests of rdma/ and tree/

RDMA_SOURCES :=
TREE_SOURCES :=
MSD_SOURCES :=
include rdma/rdma.mk
include tree/tree.mk

# What only tests have a use for is not in what others install: crash points (am/base/crash_points.c, tree/client/crash_point.c) and faults (rdma/fabric/fault.c).
TEST_SOURCES = am/base/crash_points.c tree/client/crash_point.c rdma/fabric/fault.c
LEFT_OUT = $(if $(ASSERTS),,$(TEST_SOURCES))
LIBRARY_OBJECTS = $(patsubst %.c,%.o,$(filter-out $(LEFT_OUT),$(RDMA_SOURCES) $(TREE_SOURCES)))
# The daemon's own objects, beside those of the library.
MSD_OBJECTS = $(patsubst %.c,%.o,$(MSD_SOURCES))

# What everything is compiled with. A failed assertion ends the process, and with a backend the server's run: for tests.
OWN_CFLAGS = -std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter -Wno-declaration-after-statement -pthread -MMD -MP
ifeq ($(ASSERTS),)
OWN_CFLAGS += -DNDEBUG -DSHERMAN_PRODUCTION
endif
MSD_LIBS = -lxxhash -lssl -lcrypto -lmicrohttpd -pthread

# If nothing but the daemon is asked for it is built without PostgreSQL.
DAEMON_GOALS = msd install-msd uninstall-msd
ifeq ($(filter-out $(DAEMON_GOALS),$(or $(MAKECMDGOALS),all)),)
include tree/msd/msd.mk
else

MODULE_big = sherman
# Of the files NAME_pgNN.c that of the version is taken, or of the one before it.
PG_CONFIG = pg_config
PG_UP_TO_15 = 15
PG_UP_TO_16 = 16 $(PG_UP_TO_15)
PG_UP_TO_17 = 17 $(PG_UP_TO_16)
PG_UP_TO_18 = 18 $(PG_UP_TO_17)
PG_UP_TO_19 = 19 $(PG_UP_TO_18)
PG_UP_TO := $(PG_UP_TO_$(shell $(PG_CONFIG) --version | sed -E 's/^[^0-9]*([0-9]+).*/\1/'))
VERSIONED := $(sort $(wildcard am/*/*_pg[0-9][0-9].c))
VERSIONED_NAMES := $(sort $(foreach version,$(PG_UP_TO_19),$(patsubst %_pg$(version).c,%,$(filter %_pg$(version).c,$(VERSIONED)))))
OTHER_VERSIONS := $(filter-out $(foreach name,$(VERSIONED_NAMES),$(firstword $(foreach version,$(PG_UP_TO),$(filter $(name)_pg$(version).c,$(VERSIONED))))),$(VERSIONED))
OBJS = sherman_am.o $(patsubst %.c,%.o,$(filter-out $(LEFT_OUT) $(OTHER_VERSIONS),$(sort $(wildcard am/*/*.c)))) $(LIBRARY_OBJECTS)
EXTENSION = sherman
DATA = sherman--1.0.sql sherman--1.0--1.1.sql
PGFILEDESC = "sherman - ordered index in the memory of memory nodes"

REGRESS = $(patsubst sql/%.sql,%,$(sort $(wildcard sql/*.sql)))
REGRESS_OPTS = --load-extension=sherman
ISOLATION = $(patsubst specs/%.spec,%,$(sort $(wildcard specs/*.spec)))
ISOLATION_OPTS = --load-extension=sherman
TAP_TESTS = 1

# PostgreSQL's headers are read as system headers, so that -Wextra speaks of ours alone; its callbacks have parameters
# that not every access method needs.
PG_CPPFLAGS = -I.
SERVER_HEADERS := $(shell $(PG_CONFIG) --includedir-server)
# A server that was built with a compiler of C23 has headers that want one, too (19).
NEW_STANDARD := $(if $(shell grep -s 'define HAVE_TYPEOF_UNQUAL 1' $(SERVER_HEADERS)/pg_config.h),-std=gnu2x)
PG_CFLAGS = $(OWN_CFLAGS) $(NEW_STANDARD) -isystem $(SERVER_HEADERS)
# PostgreSQL was configured for gcc: clang does not know all of its options.
ifneq ($(findstring clang,$(CC)),)
PG_CFLAGS += -Wno-unknown-warning-option -Wno-ignored-optimization-argument
endif
# Names of tree/ and rdma/ are bound inside the library: the server may have functions of the same name.
SHLIB_LINK = -Wl,-Bsymbolic -lxxhash -lssl -lcrypto -pthread

EXTRA_CLEAN = msd sherman_verbs.so $(MSD_OBJECTS) $(patsubst %.c,%.o,$(TEST_SOURCES) $(OTHER_VERSIONS)) $(patsubst %.o,%.d,$(OBJS) $(MSD_OBJECTS))

# No bitcode: nothing here is inlined into queries, and clang may differ from the compiler in use.
override with_llvm = no
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

all: msd

# The driver of the verbs transport: loaded when it is needed, so that all else works without libibverbs.
ifneq ($(VERBS_SOURCES),)
VERBS_MODULE = sherman_verbs.so
all: $(VERBS_MODULE)
install: install-verbs
uninstall: uninstall-verbs
endif

install-verbs: $(VERBS_MODULE)
	$(MKDIR_P) '$(DESTDIR)$(pkglibdir)'
	$(INSTALL_SHLIB) sherman_verbs.so '$(DESTDIR)$(pkglibdir)/sherman_verbs.so'

uninstall-verbs:
	rm -f '$(DESTDIR)$(pkglibdir)/sherman_verbs.so'

$(MSD_OBJECTS): override CFLAGS += $(CFLAGS_SL)

# Where the daemon goes has nothing to do with where PostgreSQL is.
install-msd: msd
install-msd uninstall-msd:
	$(MAKE) $@

# What Prometheus, an exporter and Grafana read.
MONITORING = monitoring/README monitoring/postgres_exporter.yml monitoring/alerts.yml monitoring/alerts_test.yml monitoring/dashboard.json
install: install-monitoring
uninstall: uninstall-monitoring

install-monitoring:
	$(MKDIR_P) '$(DESTDIR)$(datadir)/sherman/monitoring'
	$(INSTALL_DATA) $(MONITORING) '$(DESTDIR)$(datadir)/sherman/monitoring/'

uninstall-monitoring:
	rm -f $(patsubst %,'$(DESTDIR)$(datadir)/sherman/%',$(MONITORING))

.PHONY: install-monitoring uninstall-monitoring install-msd uninstall-msd install-verbs uninstall-verbs
endif

msd: $(MSD_OBJECTS) $(LIBRARY_OBJECTS)
	$(CC) $(CFLAGS) $^ $(LDFLAGS) $(MSD_LIBS) -o $@

sherman_verbs.so: $(VERBS_SOURCES) rdma/driver/verbs_device.h rdma/verbs/verbs_driver.h
	$(CC) -std=gnu11 -Wall -Wextra -Werror -O2 -g -pthread -I. -fPIC -shared -fvisibility=hidden $(VERBS_SOURCES) $(LDFLAGS) \
		-libverbs -o $@

-include $(patsubst %.o,%.d,$(OBJS) $(LIBRARY_OBJECTS) $(MSD_OBJECTS))
