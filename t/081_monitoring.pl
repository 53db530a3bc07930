
# What monitoring/ offers is true: the rules and the dashboard use metrics that msd's page and the queries give, each with the labels that it has,
# and the rules fire when they should. The names are compared without any program of others; promtool, postgres_exporter and Prometheus are taken
# out of Debian's packages, and installed nowhere.

use strict;
use warnings;

use Cwd qw(abs_path);
use FindBin;
use lib $FindBin::RealBin;
use HTTP::Tiny;
use JSON::PP;
use Msd;
use POSIX ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;
use Time::HiRes qw(usleep);

my $monitoring = abs_path("$FindBin::RealBin/../monitoring");
my $work = PostgreSQL::Test::Utils::tempdir;
my @msd = map { Msd->new($_, transport => 'tls', flags => [ '--metrics', '127.0.0.1:0', '--tenant-quota', 'main 200M' ]) } 'a', 'b';
my $node = new_cluster('main', conf => Msd::configuration() . "sherman.connection_workers = 1\nsherman.memory_nodes = '" . join(', ', map { $_->address } @msd) . "'\n");

sub sql { return $node->safe_psql('postgres', $_[0]); }

# Where a memory node's metrics are.
sub metrics_address
{
	my ($msd) = @_;
	my ($port) = slurp_file($msd->{log}) =~ /metrics at port (\d+)/ or die 'msd serves no metrics';

	return "127.0.0.1:$port";
}

sub get
{
	my ($url) = @_;
	my $answer = HTTP::Tiny->new(timeout => 30, http_proxy => undef)->get($url);

	return $answer->{success} ? $answer->{content} : '';
}

# A page's metrics: name => { label => 1 }.
sub metrics_of
{
	my ($page) = @_;
	my %metrics;

	while ($page =~ /^(sherman_\w+)(?:\{([^}]*)\})? /mg)
	{
		my ($name, $labels) = ($1, $2 // '');
		$metrics{$name}{$_} = 1 for $labels =~ /(\w+)="/g, '';
	}
	return %metrics;
}

# The queries file: a list of { name, query, columns => { column => LABEL, GAUGE or COUNTER } }.
sub queries
{
	my @queries;

	for my $text (split /^(?=sherman_\w+:$)/m, slurp_file("$monitoring/postgres_exporter.yml"))
	{
		my ($name) = $text =~ /^(sherman_\w+):$/m or next;
		my ($query) = $text =~ /^  query: \|\n(.*?)^  metrics:$/ms or die "$name has no query";
		my %columns = $text =~ /^    - (\w+):\n        usage: "(LABEL|GAUGE|COUNTER)"\n        description: "[^"]+"$/mg;
		push @queries, { name => $name, query => $query, columns => \%columns };
	}
	return @queries;
}

#
# The queries give what the file says, to a role that may monitor and nothing else.
#
sql(q{CREATE ROLE watcher LOGIN; GRANT pg_monitor TO watcher;
	CREATE TABLE t (id int, word text);
	INSERT INTO t SELECT g, md5(g::text) FROM generate_series(1, 10000) g;
	CREATE INDEX t_id ON t USING sherman (id) WITH (replicas = 1);
	CREATE INDEX t_word ON t USING sherman (word)});
sql('CREATE DATABASE other');
$node->safe_psql('other', 'CREATE EXTENSION sherman; CREATE TABLE t (id int); CREATE INDEX t_other ON t USING sherman (id)');

my %metrics = (up => { job => 1, instance => 1 });
for my $query (queries())
{
	my %declared = %{ $query->{columns} };
	my ($answer, undef, $error) = (undef, undef, '');
	$node->psql('postgres', "SET ROLE watcher; CREATE TEMP VIEW asked AS $query->{query}; SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute
		WHERE attrelid = 'asked'::regclass; SELECT count(*) FROM asked", stdout => \$answer, stderr => \$error);
	my ($columns, $rows) = split /\n/, $answer // '';
	is(join(' ', sort split / /, $columns // $error), join(' ', sort keys %declared), "$query->{name}: the query's columns are the file's");
	cmp_ok($rows // -1, '>=', 0, "$query->{name}: and it runs");
	my @labels = grep { $declared{$_} eq 'LABEL' } keys %declared;
	for my $column (grep { $declared{$_} ne 'LABEL' } keys %declared)
	{
		is($column =~ /_total$/ ? 'COUNTER' : 'GAUGE', $declared{$column}, "$query->{name}_$column: a counter ends in _total") if $declared{$column} eq 'COUNTER' || $column =~ /_total$/;
		$metrics{"$query->{name}_$column"} = { map { $_ => 1 } @labels, 'server', 'instance', 'job' };
	}
}
my %by_msd = metrics_of(get('http://' . metrics_address($msd[0]) . '/metrics'));
cmp_ok(scalar keys %by_msd, '>', 20, 'msd prints metrics');
$metrics{$_} = { %{ $by_msd{$_} }, instance => 1, job => 1 } for keys %by_msd;

#
# The rules and the dashboard use nothing else.
#
my $rules = slurp_file("$monitoring/alerts.yml");
my %alerts = map { /^(\w+)$/m; ($1 => $_) } split /^      - alert: /m, $rules =~ s/\A.*?(?=^      - alert: )//msr;
delete $alerts{''};
my $dashboard = decode_json(slurp_file("$monitoring/dashboard.json"));
my @panels = grep { $_->{type} ne 'row' } @{ $dashboard->{panels} };
my %expressions;

for my $name (keys %alerts)
{
	($expressions{"the alert $name"}) = $alerts{$name} =~ /^        expr: (.*)$/m;
	like($alerts{$name}, qr/^          severity: (?:critical|warning|info)\n.*^          summary: "[^"]+"\n.*^          description: "[^"]+"\n/ms, "$name says what it is about");
}
for my $panel (@panels)
{
	$expressions{"the panel '$panel->{title}', $_->{refId}"} = $_->{expr} for @{ $panel->{targets} };
}
my %variables = map { $_->{name} => $_ } @{ $dashboard->{templating}{list} };
for my $variable (grep { $_->{type} eq 'query' } values %variables)
{
	is($variable->{definition}, $variable->{query}{query}, "the variable $variable->{name} is said once");
	$expressions{"the variable $variable->{name}"} = $variable->{definition};
}
for my $what (sort keys %expressions)
{
	my $expression = $expressions{$what} // '';
	my @unknown = grep { !$metrics{$_} } $expression =~ /\b(sherman_\w+|up)\b/g;

	is("@unknown", '', "$what: its metrics are there");
	# Labels that a metric is chosen by.
	while ($expression =~ /\b(sherman_\w+|up)\{([^}]*)\}/g)
	{
		my ($metric, $labels) = ($1, $2);
		my @foreign = grep { !$metrics{$metric}{$_} } $labels =~ /(\w+)=/g;
		is("@foreign", '', "$what: so are the labels of $metric");
	}
	my @unset = grep { !$variables{$_} && $_ ne '__rate_interval' } $expression =~ /\$(\w+)/g;
	is("@unset", '', "$what: and its variables");
}
# Labels that an alert's words name.
for my $name (keys %alerts)
{
	my ($metric) = ($expressions{"the alert $name"} // '') =~ /\b(sherman_\w+|up)\b/;
	my @foreign = grep { !$metrics{$metric}{$_} } $alerts{$name} =~ /\$labels\.(\w+)/g;

	is("@foreign", '', "$name: its words name labels of $metric");
}
is(scalar(keys %{ { map { $_->{id} => 1 } @{ $dashboard->{panels} } } }), scalar @{ $dashboard->{panels} }, 'each panel of the dashboard has an id of its own');
is(scalar(keys %{ { map { $_->{title} => 1 } @panels } }), scalar @panels, 'and a title of its own');
is(join(' ', grep { my $panel = $_; grep { !defined $panel->{gridPos}{$_} } qw(x y w h) } @panels), '', 'and a place');

#
# The queries on the page run, for the same role.
#
my ($section) = slurp_file("$FindBin::RealBin/../doc/operate/monitoring.md") =~ /^## Queries$(.*?)^## /ms;
my @asked = $section =~ /^((?:    [^\n]*\n)+)/mg;
cmp_ok(scalar @asked, '>', 10, 'the page has queries');
for my $query (@asked)
{
	my $error = '';

	$node->psql('postgres', "SET ROLE watcher; $query", stderr => \$error);
	is($error, '', 'it runs: ' . $query =~ s/\s+/ /gr);
}

#
# Each alert is tested.
#
my $tests = slurp_file("$monitoring/alerts_test.yml");
is(join(' ', grep { $tests !~ /alertname[:=] ?"?$_\b/ } sort keys %alerts), '', 'each alert is expected in a test of promtool');

#
# The programs that read these files.
#

# program(PACKAGE, PATH): of a package of Debian, unpacked here; or why it cannot be had.
sub program
{
	my ($package, $path) = @_;
	my $log = "$work/$package.log";
	my $status = system("mkdir -p $work/programs && cd $work/programs && timeout 120 apt-get download $package >$log 2>&1 && dpkg -x ${package}_*.deb . >>$log 2>&1");
	my $why = "$package cannot be had: " . ((grep { /\S/ } split /\n/, slurp_file($log))[-1] // 'apt-get says nothing');

	return $status == 0 && -x "$work/programs/$path" ? ("$work/programs/$path", '') : (undef, $why);
}

my ($prometheus, $why_no_prometheus) = program('prometheus', 'usr/bin/prometheus');
my ($exporter, $why_no_exporter) = program('prometheus-postgres-exporter', 'usr/bin/prometheus-postgres-exporter');

# An expression as Grafana sends it.
sub plain
{
	my ($expression) = @_;

	$expression =~ s/\$__rate_interval/10s/g;
	$expression =~ s/\$\w+/.*/g;
	return $expression;
}

SKIP:
{
	skip $why_no_prometheus, 3 unless defined $prometheus;
	# Beside it, or, in later versions of Debian, in a package of its own.
	my $promtool = $prometheus =~ s/prometheus$/promtool/r;
	my $why_not;

	($promtool, $why_not) = program('promtool', 'usr/bin/promtool') unless -x $promtool;
	skip $why_not, 3 unless defined $promtool;
	command_ok([ $promtool, 'check', 'rules', "$monitoring/alerts.yml" ], 'promtool takes the rules');
	command_ok([ 'sh', '-c', "cd $monitoring && exec $promtool test rules alerts_test.yml" ], 'they fire when they should');
	# The panels' expressions, as if they were rules.
	append_to_file("$work/panels.yml", "groups:\n  - name: panels\n    rules:\n"
		. join('', map { "      - record: panel\n        labels: {number: \"$_\"}\n        expr: " . encode_json([ plain($expressions{$_}) ]) =~ s/^\[|\]$//gr . "\n" } grep { /panel/ } sort keys %expressions));
	command_ok([ $promtool, 'check', 'rules', '--lint=none', "$work/panels.yml" ], "promtool takes the panels' expressions");
}

#
# All of it together: a server and two memory nodes, an exporter, Prometheus.
#
my @children;

sub start_program
{
	my ($name, $environment, @command) = @_;
	my $pid = fork // die "fork: $!";

	if ($pid == 0)
	{
		open STDIN, '<', '/dev/null';
		open STDOUT, '>', "$PostgreSQL::Test::Utils::log_path/081_monitoring_$name.log";
		open STDERR, '>&', \*STDOUT;
		@ENV{ keys %$environment } = values %$environment;
		exec(@command) or POSIX::_exit(127);
	}
	push @children, $pid;
	return;
}

END
{
	my $status = $?;

	for my $child (@children)
	{
		kill 'KILL', $child;
		waitpid($child, 0);
	}
	$? = $status;
}

# wait_until(CODE): what it returns, when that is true, or false after the time of all waits.
sub wait_until
{
	my ($code) = @_;

	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		my $answer = $code->();
		return $answer if $answer;
		usleep(100_000);
	}
	return;
}

SKIP:
{
	skip $why_no_prometheus || $why_no_exporter, 1 unless defined $prometheus && defined $exporter;
	my ($exporter_port, $prometheus_port) = map { PostgreSQL::Test::Cluster::get_free_port() } 1, 2;
	my $api = "http://127.0.0.1:$prometheus_port/api/v1";


	# A database without the extension is not asked.
	sql('CREATE DATABASE without');
	start_program('exporter', { DATA_SOURCE_NAME => 'host=' . $node->host . ' port=' . $node->port . ' user=watcher dbname=postgres sslmode=disable' },
		$exporter, '--auto-discover-databases', '--include-databases=other', "--web.listen-address=127.0.0.1:$exporter_port", "--extend.query-path=$monitoring/postgres_exporter.yml", '--disable-default-metrics', '--disable-settings-metrics');
	my %exported = %{ wait_until(sub { my %all = metrics_of(get("http://127.0.0.1:$exporter_port/metrics")); return %all ? \%all : undef; }) // {} };
	# What is healed or rebuilt has rows only while it is.
	is(join(' ', grep { !/^sherman_(msd|heal|rebuild)_/ && $_ ne 'up' && !$exported{$_} } sort keys %metrics), '', 'the exporter gives what the file says');
	is(join(' ', grep { my $name = $_; grep { $_ ne '' && !$metrics{$name}{$_} } keys %{ $exported{$name} } } sort keys %exported), '', 'and no other names and labels');
	like(get("http://127.0.0.1:$exporter_port/metrics"), qr/^pg_exporter_last_scrape_error\S* 0$/m, 'and has no error');

	append_to_file("$work/prometheus.yml", "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: ['$monitoring/alerts.yml']\nscrape_configs:\n"
		. "  - {job_name: sherman-msd, static_configs: [{targets: [" . join(', ', map { "'" . metrics_address($_) . "'" } @msd) . "]}]}\n"
		. "  - {job_name: postgres, static_configs: [{targets: ['127.0.0.1:$exporter_port']}]}\n");
	start_program('prometheus', {}, $prometheus, "--config.file=$work/prometheus.yml", "--storage.tsdb.path=$work/tsdb", "--web.listen-address=127.0.0.1:$prometheus_port");

	# How many series an expression gives.
	my $series = sub {
		my ($expression) = @_;
		my $answer = get("$api/query?" . HTTP::Tiny->new->www_form_urlencode({ query => $expression }));

		return $answer eq '' ? 0 : scalar @{ decode_json($answer)->{data}{result} };
	};
	ok(wait_until(sub { $series->('sherman_memory_node_attached') == 2 && $series->('rate(sherman_index_lookups_total[10s])') == 3 }), 'Prometheus has the figures of both memory nodes, and of the indexes of both databases');
	for my $what (grep { /panel/ && $expressions{$_} !~ /\bsherman_(heal|rebuild)_/ } sort keys %expressions)
	{
		# What is shown only if it is bad is asked for, too, while all is well.
		my $expression = plain($expressions{$what}) =~ s/ > 0//gr;

		ok(wait_until(sub { $series->($expression) > 0 }), "$what shows something");
	}

	my $alerts = sub {
		my $answer = get("$api/alerts");

		return join(' ', sort keys %{ { map { $_->{labels}{alertname} => 1 } $answer eq '' ? () : @{ decode_json($answer)->{data}{alerts} } } });
	};
	is($alerts->(), '', 'no alert is near while all is well');
	$msd[1]->crash;
	my @expected = qw(ShermanMemoryNodeAway ShermanMsdDown ShermanReplicaMissing);
	ok(wait_until(sub { my $now = $alerts->(); return !grep { $now !~ /\b$_\b/ } @expected }), "with a memory node away they are: @expected") or diag($alerts->());
}
$node->stop;

done_testing();
