# Safeguards of what all rooms of am/ use, of views, of files, of connection workers. Sourced by script/test long mutations-server.

# ---- small files, and what is ours
mutate half_written_file_takes_its_place t/044_disk_full am/base/files.c \
	's/return written && durable_rename/return durable_rename/'
mutate foreign_index_is_ours sql/views am/base/method.c \
	's/return routine->amoptions == sherman_options;/return routine->amoptions != NULL;/'
mutate copied_method_is_not_ours sql/ddl am/base/method.c \
	's/return routine->amoptions == sherman_options;/return routine->amoptions == sherman_options \&\& false;/'

# ---- the list of memory nodes
mutate port_zero t/077_settings am/base/node_list.c \
	's/if \(port < 1 \|\|/if (port < 0 ||/'
mutate port_beyond_16_bits t/077_settings am/base/node_list.c \
	's/port > 65535/port > 65536/'
mutate port_of_six_digits t/077_settings am/base/node_list.c \
	's/text \+ bytes - colon > 5\)/text + bytes - colon > 6)/; s/port > 65535/port > 999999/'
mutate host_of_no_letters t/077_settings am/base/node_list.c \
	's/ \|\| host_end == text\)/)/'
mutate brackets_around_nothing t/077_settings am/base/node_list.c \
	's/return host_end - text > 2 &&/return host_end - text >= 2 \&\&/'
mutate any_character_in_a_host t/077_settings am/base/node_list.c \
	's/\*c != \x27\.\x27 && \*c/*c != \x27.\x27 \&\& *c != \x27\/\x27 \&\& *c/'
mutate relative_path_of_a_memory_node t/077_settings am/base/node_list.c \
	's/if \(text\[strlen\(path_scheme\)\] != \x27\/\x27\)/if (text[strlen(path_scheme)] == 0)/'
mutate same_memory_node_twice t/077_settings am/base/node_list.c \
	's/if \(strcmp\(parsed\[i\], parsed\[count\]\) == 0\)/if (false)/'
mutate one_memory_node_too_many t/077_settings am/base/node_list.c \
	's/if \(count == TREE_MAX_NODES\)/if (count > TREE_MAX_NODES)/; s/parsed\[TREE_MAX_NODES\]/parsed[TREE_MAX_NODES + 1]/'
mutate one_memory_node_too_few t/077_settings am/base/node_list.c \
	's/if \(count == TREE_MAX_NODES\)/if (count + 1 == TREE_MAX_NODES)/'
mutate address_too_long_by_one t/077_settings am/base/node_list.c \
	's/if \(bytes \+ sizeof\("tcp:"\) > SHERMAN_ADDRESS_BYTES\)/if (bytes + sizeof("tcp:") > SHERMAN_ADDRESS_BYTES + 1)/'
mutate longest_address_refused t/077_settings am/base/node_list.c \
	's/if \(bytes \+ sizeof\("tcp:"\) > SHERMAN_ADDRESS_BYTES\)/if (bytes + sizeof("tcp:") >= SHERMAN_ADDRESS_BYTES)/'
mutate empty_element_of_the_list t/077_settings am/base/node_list.c \
	's/if \(bytes == 0\)\n\t\treturn "An element of the list is empty.";\n//'

# ---- storage parameters
mutate fillfactor_as_it_is sql/build am/base/options.c \
	's/return Max\(options->fillfactor, FILLFACTOR_LEAST\);/return options->fillfactor;/'
mutate fillfactor_not_minded sql/build am/base/options.c \
	's/return Max\(options->fillfactor, FILLFACTOR_LEAST\);/return BTREE_DEFAULT_FILLFACTOR;/'
mutate wide_cells_in_postings sql/duplicates am/base/options.c \
	's/ \|\| format->cell_bytes > TREE_POSTING_CELL_MAX_BYTES//'
mutate duplicates_always_together sql/duplicates am/base/options.c \
	's/options == NULL \|\| options->deduplicate_items/true/'
mutate duplicates_never_together sql/duplicates am/base/options.c \
	's/return options == NULL \|\| options->deduplicate_items/return options != NULL \&\& options->deduplicate_items/'
mutate copies_of_what_is_lost_anyway sql/replicas am/base/options.c \
	's/ && index->rd_rel->relpersistence == RELPERSISTENCE_PERMANENT//'
mutate two_copies sql/errors am/base/options.c \
	's/#define REPLICAS_MOST 1/#define REPLICAS_MOST 2/'

# ---- settings
mutate relative_directory t/077_settings am/base/settings.c \
	's/if \(!is_absolute_path\(\*value\)\)/if (false)/'
mutate wrong_list_taken t/077_settings am/base/settings.c \
	's/sherman_parse_nodes\(\*value, NULL, &problem\) >= 0/sherman_parse_nodes(*value, NULL, \&problem) >= -1/'
mutate restart_not_told t/070_forget am/base/settings.c \
	's/sherman_shared->embedded \? named :/sherman_shared->embedded ? false :/'
mutate number_of_core_for_recovery t/077_settings am/base/settings.c \
	's/if \(\*value == 0 \|\| RmgrIdIsCustom\(\*value\)\)/if (true)/'

# ---- the reserve
mutate parts_of_the_reserve_overlap t/011_many_indexes am/base/reserve.c \
	's/pg_atomic_fetch_add_u64\(&reserve->used, CACHELINEALIGN\(bytes\)\)/pg_atomic_fetch_add_u64(\&reserve->used, CACHELINEALIGN(bytes) \/ 2)/'

# ---- progress of healing
mutate place_of_progress_not_given_back t/033_healer am/heal/heal_progress.c \
	's/\tshown->pid = 0;\n//'

# ---- what a memory node vouches for
mutate torn_lines_called_atomic sql/views am/nodes/capabilities.c \
	's/capabilities->flags & FABRIC_CAP_LINE_ATOMIC \?/capabilities->flags == 0 ?/'
mutate locks_of_a_device_called_hosts sql/views am/nodes/capabilities.c \
	's/capabilities->flags & FABRIC_CAP_DEVICE_LOCKS \?/true ?/'

# ---- connection workers
mutate worker_not_awake t/014_connection_workers am/nodes/connection_proxy.c \
	's/if \(pg_atomic_read_u32\(&connection_proxy\.shared->pid\[worker\]\) != 0\)/if (false)/'
mutate ended_worker_is_not_started_again t/014_connection_workers am/nodes/connection_workers.c \
	's/\tproc_exit\(1\);/\tproc_exit(0);/'

# ---- views, sherman_resync()
mutate broken_at_is_shown_of_all sql/views am/sql/stats.c \
	's/nulls\[3\] = \(meta\.flags & SHERMAN_META_BROKEN\) == 0;/nulls[3] = false;/'
mutate inner_nodes_not_counted sql/views am/sql/stats.c \
	's/\(size\.leaves \+ size\.inner_nodes\)/size.leaves/'
mutate size_is_of_nodes_alone sql/views am/sql/stats.c \
	's/PG_RETURN_INT64\(\(int64\) size\.extent_bytes\);/PG_RETURN_INT64(0);/'
mutate foreign_index_has_a_size sql/views am/sql/stats.c \
	's/if \(!sherman_is_ours\(oid\)\)/if (false)/'
mutate forgotten_is_lost t/070_forget am/index/state.c \
	's/sherman_shared->local\.node\[position\]\.forgotten != 0/false/'
mutate forgotten_nodes_are_named t/070_forget am/sql/stats.c \
	's/\treturn sherman_shared->node\[position\]\.member == member;/\treturn true;/'
mutate unlisted_are_awaited t/070_forget am/server/attach.c \
	's/if \(other_entry\(-1, i\) < 0\)(\n\t\t\tsherman_node_not_awaited)/if (false)$1/'
mutate everybody_reads_addresses t/070_forget am/nodes/errors.c \
	's/sees = has_privs_of_role\(GetUserId\(\), ROLE_PG_READ_ALL_STATS\)/sees = true/'
mutate refused_is_ok t/017_memory_node_errors am/index/state_text.c \
	's/\treturn sherman_connection_failure\(position, &status\)\[0\] != .*;/\treturn false;/'
mutate refused_is_attached t/017_memory_node_errors am/sql/stats.c \
	's/!ask_node\(position, values, nulls\) &&/!ask_node(position, values, nulls) \&\& false \&\&/'
mutate not_preloaded_unsaid t/080_messages am/keys/mirror.c \
	's/if \(creating_extension && !sherman_preloaded\(\)\)/if (false)/'
mutate foreign_keys_unexplained t/080_messages am/server/hooks.c \
	's/\t\tsherman_explain_error\(statement->utilityStmt\);\n//'
mutate missing_class_unsaid t/080_messages am/server/hooks.c \
	's/\tsherman_require_classes\(statement->utilityStmt\);\n//'
mutate strangers_learn_of_classes t/080_messages am/keys/missing_class.c \
	's/!compat_owns\(RelationRelationId, table\)/false/'
mutate partitions_unsaid t/080_messages am/planner/constraints.c \
	's/if \(sherman_constraints && !by_setting\)(\n\t\tnotice_btree)/if (false)$1/'
mutate relpages_are_cores sql/relpages am/access/relpages.c \
	's/\tif \(wrong\)/\tif (false)/'
mutate relpages_not_behind_analyze sql/relpages am/access/relpages.c \
	's/#define COMMITS_TO_LOOK_AT 3/#define COMMITS_TO_LOOK_AT 1/'
mutate rebuilt_index_has_old_relpages sql/relpages am/access/relpages.c \
	's/ && compat_file_number\(compat_file\(index\)\) == relpages\.noted\[i\]\.file\)/)/'
mutate own_counts_outlive_a_reset sql/views am/sql/stats.c \
	's/\t\t\ttree_count_flush\(opened->tree\);/\t\t\t(void) opened;/'
mutate resync_without_a_copy sql/replicas am/sql/resync.c \
	's/ \|\| tree_replicas_get\(opened->tree\) != TREE_REPLICAS_BOTH\)/)/'

# ---- operator classes, the table of callbacks
mutate any_class_is_valid sql/opclass am/keys/validate.c \
	's/return btvalidate\(opclass\);/return true;/'
mutate no_class_is_valid sql/opclass am/keys/validate.c \
	's/return btvalidate\(opclass\);/return false;/'
mutate no_order sql/plans sherman_am.c \
	's/amcanorder = true/amcanorder = false/'
mutate no_arrays sql/arrays sherman_am.c \
	's/amsearcharray = true/amsearcharray = false/'
mutate no_search_for_null sql/plans sherman_am.c \
	's/amsearchnulls = true/amsearchnulls = false/'
mutate no_leading_column_no_use sql/plans sherman_am.c \
	's/amoptionalkey = true/amoptionalkey = false/'
mutate no_included_columns sql/index_only sherman_am.c \
	's/amcaninclude = true/amcaninclude = false/'
mutate no_clustering sql/ddl sherman_am.c \
	's/amclusterable = true/amclusterable = false/'
mutate no_predicate_locks specs/serializable sherman_am.c \
	's/ampredlocks = true/ampredlocks = false/'
mutate no_parallel_scan sql/parallel sherman_am.c \
	's/amcanparallel = true/amcanparallel = false/'

# ---- a build's sorts
mutate descending_column_ascends sql/build am/access/build_sort.c \
	's/descending \? BTGreaterStrategyNumber : BTLessStrategyNumber/BTLessStrategyNumber/'
