# The memory node's daemon alone, for the top-level Makefile: neither PostgreSQL nor its headers are needed.
#
#	make msd; make install-msd prefix=/usr/local systemdunitdir=/lib/systemd/system DESTDIR=
#
# Installs the daemon, the verbs driver where it could be built, the page of the manual, the units and an example of the settings. systemd finds
# the unit if systemdunitdir is one of its own directories.

prefix = /usr/local
bindir = $(prefix)/bin
libdir = $(prefix)/lib
datadir = $(prefix)/share
mandir = $(datadir)/man
systemdunitdir = $(datadir)/sherman
INSTALL = install

CFLAGS ?= -O2 -g
# As the extension, which is linked of the same objects: for a library, and with the rules of C that PostgreSQL is compiled with.
override CFLAGS += $(OWN_CFLAGS) -fPIC -fno-strict-aliasing -fwrapv
override CPPFLAGS += -I. -D_GNU_SOURCE

# Where the daemon looks for the driver: see open_driver().
VERBS_MODULE = $(if $(VERBS_SOURCES),sherman_verbs.so)

# The unit, for the settings /etc/sherman/$(1).conf and directories of this name.
unit = sed 's|@bindir@|$(bindir)|; s|@config@|$(1)|; s|@directory@|$(2)|' doc/operate/msd.service.in

install-msd: msd $(VERBS_MODULE)
	$(INSTALL) -d '$(DESTDIR)$(bindir)' '$(DESTDIR)$(libdir)/sherman' '$(DESTDIR)$(mandir)/man8' '$(DESTDIR)$(datadir)/sherman' '$(DESTDIR)$(systemdunitdir)'
	$(INSTALL) msd '$(DESTDIR)$(bindir)/msd'
	[ -z '$(VERBS_MODULE)' ] || $(INSTALL) -m 644 sherman_verbs.so '$(DESTDIR)$(libdir)/sherman/sherman_verbs.so'
	$(INSTALL) -m 644 doc/operate/msd.8 '$(DESTDIR)$(mandir)/man8/msd.8'
	$(INSTALL) -m 644 doc/operate/msd.conf '$(DESTDIR)$(datadir)/sherman/msd.conf'
	$(call unit,msd,sherman) >'$(DESTDIR)$(systemdunitdir)/msd.service'
	$(call unit,%i,sherman/%i) >'$(DESTDIR)$(systemdunitdir)/msd@.service'

uninstall-msd:
	rm -f '$(DESTDIR)$(bindir)/msd' '$(DESTDIR)$(libdir)/sherman/sherman_verbs.so' '$(DESTDIR)$(mandir)/man8/msd.8' \
		'$(DESTDIR)$(datadir)/sherman/msd.conf' '$(DESTDIR)$(systemdunitdir)/msd.service' \
		'$(DESTDIR)$(systemdunitdir)/msd@.service'

.PHONY: install-msd uninstall-msd
