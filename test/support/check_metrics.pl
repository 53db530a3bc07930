#!/usr/bin/perl
#
# check_metrics.pl
#		Reads a page of metrics on its standard input, as strictly as Prometheus's text format 0.0.4 is meant; prints each
#		sample as "name{labels} value" or, on the first error, says what it is and fails.

use strict;
use warnings FATAL => 'all';

my (%family, %done, %seen, $current, %buckets, %counts, %sums);

sub wrong { die "line $.: $_[0]\n"; }

my $name = qr/[a-zA-Z_:][a-zA-Z0-9_:]*/;
my $label = qr/[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"/;
my $value = qr/[+-]?(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|Inf)|NaN/;

while (my $line = <STDIN>)
{
	chomp($line) or wrong('the page does not end with a newline');
	if ($line =~ /^# HELP ($name) (\S.*)$/)
	{
		wrong("$1 comes twice") if $family{$1};
		wrong("$current has no type") if defined $current && !$family{$current}{type};
		$done{$current} = 1 if defined $current;
		$current = $1;
		$family{$current} = { help => $2 };
	}
	elsif ($line =~ /^# TYPE ($name) (counter|gauge|histogram)$/)
	{
		my ($typed, $type) = ($1, $2);
		wrong("type of $typed without its help") unless defined $current && $current eq $typed;
		wrong("$typed has two types") if $family{$typed}{type};
		$family{$typed}{type} = $type;
		wrong("counter $typed does not end in _total") if $type eq 'counter' && $typed !~ /_total$/;
		wrong("$type $typed ends in _total") if $type ne 'counter' && $typed =~ /_total$/;
	}
	elsif ($line =~ /^($name)(?:\{((?:$label)(?:,$label)*)\})? ($value)$/)
	{
		my ($sample, $labels, $number) = ($1, $2 // '', $3);
		wrong("sample $sample before any type") unless defined $current && $family{$current}{type};
		my $type = $family{$current}{type};
		my $fits = $type eq 'histogram' ? $sample =~ /^${current}_(bucket|sum|count)$/ : $sample eq $current;
		wrong("sample $sample under $current") unless $fits;
		wrong("$sample\{$labels} twice") if $seen{"$sample\{$labels}"}++;
		wrong("negative $sample") if $number =~ /^-/;
		if ($type eq 'histogram')
		{
			my $key = $labels;
			if ($sample =~ /_bucket$/)
			{
				$key =~ s/,?le="([^"]*)"// or wrong("bucket of $current without le");
				push @{ $buckets{"$current\{$key}"} }, [ $1, $number ];
			}
			elsif ($sample =~ /_sum$/) { $sums{"$current\{$key}"} = $number; }
			else { $counts{"$current\{$key}"} = $number; }
		}
		print "$sample", ($labels ne '' ? "{$labels}" : ''), " $number\n";
	}
	else { wrong("neither help, type nor sample: $line"); }
}
die "there is no metric\n" unless %family;
for my $key (keys %buckets)
{
	my ($bound, $count) = (-1, 0);
	for my $bucket (@{ $buckets{$key} })
	{
		my $le = $bucket->[0] eq '+Inf' ? 9**9**9 : $bucket->[0];
		die "$key: bounds do not ascend at $bucket->[0]\n" if $le <= $bound;
		die "$key: buckets do not add up at $bucket->[0]\n" if $bucket->[1] < $count;
		($bound, $count) = ($le, $bucket->[1]);
	}
	die "$key: no bucket +Inf\n" unless $buckets{$key}[-1][0] eq '+Inf';
	die "$key: sum or count is missing\n" unless defined $sums{$key} && defined $counts{$key};
	die "$key: the count is not the last bucket\n" unless $counts{$key} == $count;
}
