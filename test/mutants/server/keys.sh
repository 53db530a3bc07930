# Safeguards of am/ in keys, their conditions and their order, and in what carries them. Sourced by script/test long mutations-server.

# ---- conditions to bounds
mutate last_element_not_searched sql/arrays qual_accepts \
	's/int\t\t\thigh = qual->element_count;/int\t\t\thigh = qual->element_count - 1;/'
mutate greatest_element_but_one sql/arrays take_array \
	's/\? count - 1 : 0\]/? Max(count - 2, 0) : 0]/'
mutate last_element_dropped sql/arrays take_array \
	's/for \(int i = 1; i < count; i\+\+\)/for (int i = 1; i + 1 < count; i++)/'
mutate wider_of_two_edges sql/multicolumn choose_edge \
	's/order == 0 \? qual_is_inclusive\(\*chosen\)/order == 0 ? !qual_is_inclusive(*chosen)/'

# ---- rows to keys, and keys to rows
mutate column_that_just_fits_left_out sql/basic place_columns \
	's/at \+ width <= end/at + width < end/'
mutate descending_integers_not_inverted sql/index_only place_data \
	's/if \(column->descending\)\n\t\t\tcolumn->inverted = ~column->inverted;/if (false)\n\t\t\tcolumn->inverted = 0;/'
mutate integer_over_two_words_cut sql/index_only words_integer \
	's/skipped \+ bytes \* 8 > 64/skipped + bytes * 8 > 64 + 64/'
mutate null_taken_for_a_value sql/index_only write_integers \
	's/if \(key->high != key_null_flag\(first, false\)\)\n\t\treturn false;/if (false)\n\t\treturn false;/'
mutate null_bitmap_not_copied sql/include copy_head \
	's/if \(start > sizeof\(IndexTupleData\)\)/if (start > sizeof(IndexTupleData) + 8)/'

# ---- values to bytes
mutate string_that_just_fills_its_room sql/types normalize.c:put_string \
	's/if \(length >= room\)/if (length > room)/'
mutate minus_zero_below_zero sql/types put_float8 \
	's/if \(value == 0\)\n\t\t\tvalue = 0;/if (false)\n\t\t\tvalue = 0;/'
mutate last_bit_of_a_network_lost sql/types normalize_inet \
	's/Max\(0, Min\(8, bits - i \* 8\)\)/Max(0, Min(8, bits - 1 - i * 8))/'

# ---- sorting
mutate last_row_of_a_run_not_sorted sql/build sort_rows \
	's/sort_rows_2\(\(Row2 \*\) sort->rows, sort->count\)/sort_rows_2((Row2 *) sort->rows, sort->count - (sort->count > 1))/'
mutate dead_rows_sorted_as_living sql/unique encode_offset \
	's/\(dead \? 1 : 0\)/(dead \&\& false ? 1 : 0)/'

# ---- parallel scans
mutate leaf_read_by_two sql/parallel parallel_scan_seize \
	's/\t\t\tshared->state = PARALLEL_READING;/\t\t\tshared->state = PARALLEL_IDLE;/' \
	leave_reading \
	's/\tAssert\(shared->state == PARALLEL_READING\);\n//'
mutate rescan_goes_on_where_it_was sql/parallel sherman_parallelrescan \
	's/\tshared->place.begun = false;\n//'
mutate each_participant_counts_a_scan sql/parallel parallel_scan_first \
	's/\tshared->first_came = true;\n//'

# ---- constraints
mutate partitions_get_constraints_of_ours sql/constraints table_can \
	's/ && !form->relispartition;/;/'
mutate constraints_of_btree_get_ours sql/constraints mark_of \
	's/defGetBoolean\(option\) \? MARK_ON : MARK_OFF/MARK_ON/'

# ---- connections
mutate cancel_ends_a_wait_at_once t/008_unreachable CANCEL_PATIENCE_US \
	's/#define CANCEL_PATIENCE_US 1000000/#define CANCEL_PATIENCE_US 0/'
mutate connection_of_an_earlier_attach_goes_on t/008_unreachable sherman_connection_refresh \
	's/connection.node\[i\].serial != pg_atomic_read_u64\(&sherman_shared->node\[i\].serial\)\)\n\t\t\tdisconnect_node/false)\n\t\t\tdisconnect_node/'
