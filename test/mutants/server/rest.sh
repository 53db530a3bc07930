# Safeguards of what all rooms of am/ use, of views, of files, of connection workers. Sourced by script/test long mutations-server.

# ---- small files, and what is ours
mutate half_written_file_takes_its_place t/044_disk_full sherman_file_write \
	's/return written && durable_rename/return durable_rename/'
mutate foreign_index_is_ours sql/views sherman_is_our_method \
	's/return routine->amoptions == sherman_options;/return routine->amoptions != NULL;/'
mutate copied_method_is_not_ours sql/ddl sherman_is_our_method \
	's/return routine->amoptions == sherman_options;/return routine->amoptions == sherman_options \&\& false;/'

# ---- the list of memory nodes
mutate port_zero t/077_settings valid_host_and_port \
	's/if \(port < 1 \|\|/if (port < 0 ||/'
mutate port_beyond_16_bits t/077_settings valid_host_and_port \
	's/port > 65535/port > 65536/'
mutate port_of_six_digits t/077_settings valid_host_and_port \
	's/text \+ bytes - colon > 5\)/text + bytes - colon > 6)/; s/port > 65535/port > 999999/'
mutate host_of_no_letters t/077_settings valid_host_and_port \
	's/ \|\| host_end == text\)/)/'
mutate brackets_around_nothing t/077_settings valid_host_and_port \
	's/return host_end - text > 2 &&/return host_end - text >= 2 \&\&/'
mutate any_character_in_a_host t/077_settings valid_host_and_port \
	's/\*c != \x27\.\x27 && \*c/*c != \x27.\x27 \&\& *c != \x27\/\x27 \&\& *c/'
mutate relative_path_of_a_memory_node t/077_settings parse_node \
	's/if \(text\[strlen\(path_scheme\)\] != \x27\/\x27\)/if (text[strlen(path_scheme)] == 0)/'
mutate same_memory_node_twice t/077_settings sherman_parse_nodes \
	's/if \(strcmp\(parsed\[i\], parsed\[count\]\) == 0\)/if (false)/'
mutate one_memory_node_too_many t/077_settings sherman_parse_nodes \
	's/if \(count == TREE_MAX_NODES\)/if (count > TREE_MAX_NODES)/; s/parsed\[TREE_MAX_NODES\]/parsed[TREE_MAX_NODES + 1]/'
mutate one_memory_node_too_few t/077_settings sherman_parse_nodes \
	's/if \(count == TREE_MAX_NODES\)/if (count + 1 == TREE_MAX_NODES)/'
mutate address_too_long_by_one t/077_settings parse_node \
	's/if \(bytes \+ sizeof\("tcp:"\) > SHERMAN_ADDRESS_BYTES\)/if (bytes + sizeof("tcp:") > SHERMAN_ADDRESS_BYTES + 1)/'
mutate longest_address_refused t/077_settings parse_node \
	's/if \(bytes \+ sizeof\("tcp:"\) > SHERMAN_ADDRESS_BYTES\)/if (bytes + sizeof("tcp:") >= SHERMAN_ADDRESS_BYTES)/'
mutate empty_element_of_the_list t/077_settings parse_node \
	's/if \(bytes == 0\)\n\t\treturn "An element of the list is empty.";\n//'

# ---- storage parameters
mutate fillfactor_as_it_is sql/build sherman_fillfactor \
	's/return Max\(options->fillfactor, FILLFACTOR_LEAST\);/return options->fillfactor;/'
mutate fillfactor_not_minded sql/build sherman_fillfactor \
	's/return Max\(options->fillfactor, FILLFACTOR_LEAST\);/return BTREE_DEFAULT_FILLFACTOR;/'
mutate wide_cells_in_postings sql/duplicates sherman_deduplicates \
	's/ \|\| format->cell_bytes > TREE_POSTING_CELL_MAX_BYTES//'
mutate duplicates_always_together sql/duplicates sherman_deduplicates \
	's/options == NULL \|\| options->deduplicate_items/true/'
mutate duplicates_never_together sql/duplicates sherman_deduplicates \
	's/return options == NULL \|\| options->deduplicate_items/return options != NULL \&\& options->deduplicate_items/'
mutate copies_of_what_is_lost_anyway sql/replicas sherman_wants_replica \
	's/ && index->rd_rel->relpersistence == RELPERSISTENCE_PERMANENT//'
mutate two_copies sql/errors REPLICAS_MOST \
	's/#define REPLICAS_MOST 1/#define REPLICAS_MOST 2/'

# ---- settings
mutate relative_directory t/077_settings check_directory \
	's/if \(!is_absolute_path\(\*value\)\)/if (false)/'
mutate wrong_list_taken t/077_settings check_memory_nodes \
	's/sherman_parse_nodes\(\*value, NULL, &problem\) >= 0/sherman_parse_nodes(*value, NULL, \&problem) >= -1/'
mutate restart_not_told t/070_forget sherman_list_awaits_restart \
	's/sherman_shared->embedded \? named :/sherman_shared->embedded ? false :/'
mutate number_of_core_for_recovery t/077_settings check_resource_manager_id \
	's/if \(\*value == 0 \|\| RmgrIdIsCustom\(\*value\)\)/if (true)/'

# ---- the reserve
mutate parts_of_the_reserve_overlap t/011_many_indexes sherman_reserve_allocate \
	's/pg_atomic_fetch_add_u64\(&reserve->used, CACHELINEALIGN\(bytes\)\)/pg_atomic_fetch_add_u64(\&reserve->used, CACHELINEALIGN(bytes) \/ 2)/'

# ---- progress of healing
mutate place_of_progress_not_given_back t/033_healer heal_progress.c:give_back \
	's/\tshown->pid = 0;\n//'

# ---- what a memory node vouches for
mutate torn_lines_called_atomic sql/views sherman_capabilities_text \
	's/capabilities->flags & FABRIC_CAP_LINE_ATOMIC \?/capabilities->flags == 0 ?/'
mutate locks_of_a_device_called_hosts sql/views sherman_capabilities_text \
	's/capabilities->flags & FABRIC_CAP_DEVICE_LOCKS \?/true ?/'

# ---- connection workers
mutate worker_not_awake t/014_connection_workers connection_proxy.c:wake_worker \
	's/if \(pg_atomic_read_u32\(&connection_proxy\.shared->pid\[worker\]\) != 0\)/if (false)/'
mutate ended_worker_is_not_started_again t/014_connection_workers sherman_connection_worker_main \
	's/\tproc_exit\(1\);/\tproc_exit(0);/'

# ---- views, sherman_resync()
mutate broken_at_is_shown_of_all sql/views sherman_index_info \
	's/nulls\[3\] = \(meta\.flags & SHERMAN_META_BROKEN\) == 0;/nulls[3] = false;/'
mutate inner_nodes_not_counted sql/views sherman_index_info \
	's/\(size\.leaves \+ size\.inner_nodes\)/size.leaves/'
mutate size_is_of_nodes_alone sql/views sherman_relation_size \
	's/PG_RETURN_INT64\(\(int64\) size\.extent_bytes\);/PG_RETURN_INT64(0);/'
mutate foreign_index_has_a_size sql/views open_ours \
	's/if \(!sherman_is_ours\(oid\)\)/if (false)/'
mutate forgotten_is_lost t/070_forget why_lost \
	's/sherman_shared->local\.node\[position\]\.forgotten != 0/false/'
mutate forgotten_nodes_are_named t/070_forget is_member \
	's/\treturn sherman_shared->node\[position\]\.member == member;/\treturn true;/'
mutate unlisted_are_awaited t/070_forget stop_awaiting_unlisted \
	's/if \(other_entry\(-1, i\) < 0\)(\n\t\t\tsherman_node_not_awaited)/if (false)$1/'
mutate everybody_reads_addresses t/070_forget sherman_away_text \
	's/sees = has_privs_of_role\(GetUserId\(\), ROLE_PG_READ_ALL_STATS\)/sees = true/'
mutate refused_is_ok t/017_memory_node_errors is_refused \
	's/\treturn sherman_connection_failure\(position, &status\)\[0\] != .*;/\treturn false;/'
mutate refused_is_attached t/017_memory_node_errors put_node \
	's/!ask_node\(position, values, nulls\) &&/!ask_node(position, values, nulls) \&\& false \&\&/'
mutate not_preloaded_unsaid t/080_messages sherman_mirror_opfamilies \
	's/if \(creating_extension && !sherman_preloaded\(\)\)/if (false)/'
mutate foreign_keys_unexplained t/080_messages utility \
	's/\t\tsherman_explain_error\(statement->utilityStmt\);\n//'
mutate missing_class_unsaid t/080_messages run_utility \
	's/\tsherman_require_classes\(statement->utilityStmt\);\n//'
mutate strangers_learn_of_classes t/080_messages sherman_require_classes \
	's/!compat_owns\(RelationRelationId, table\)/false/'
mutate partitions_unsaid t/080_messages sherman_set_methods \
	's/if \(sherman_constraints && !by_setting\)(\n\t\tnotice_btree)/if (false)$1/'
mutate relpages_are_cores sql/relpages write_pages \
	's/\tif \(wrong\)/\tif (false)/'
mutate relpages_not_behind_analyze sql/relpages COMMITS_TO_LOOK_AT \
	's/#define COMMITS_TO_LOOK_AT 3/#define COMMITS_TO_LOOK_AT 1/'
mutate rebuilt_index_has_old_relpages sql/relpages write_noted \
	's/ && compat_file_number\(compat_file\(index\)\) == relpages\.noted\[i\]\.file\)/)/'
mutate own_counts_outlive_a_reset sql/views sherman_stat_reset_index \
	's/\t\t\ttree_count_flush\(opened->tree\);/\t\t\t(void) opened;/'
mutate resync_without_a_copy sql/replicas sherman_resync \
	's/ \|\| tree_replicas_get\(opened->tree\) != TREE_REPLICAS_BOTH\)/)/'

# ---- operator classes, the table of callbacks
mutate any_class_is_valid sql/opclass sherman_validate \
	's/return btvalidate\(opclass\);/return true;/'
mutate no_class_is_valid sql/opclass sherman_validate \
	's/return btvalidate\(opclass\);/return false;/'
mutate no_order sql/plans shermanhandler \
	's/amcanorder = true/amcanorder = false/'
mutate no_arrays sql/arrays shermanhandler \
	's/amsearcharray = true/amsearcharray = false/'
mutate no_search_for_null sql/plans shermanhandler \
	's/amsearchnulls = true/amsearchnulls = false/'
mutate no_leading_column_no_use sql/plans shermanhandler \
	's/amoptionalkey = true/amoptionalkey = false/'
mutate no_included_columns sql/index_only shermanhandler \
	's/amcaninclude = true/amcaninclude = false/'
mutate no_clustering sql/ddl shermanhandler \
	's/amclusterable = true/amclusterable = false/'
mutate no_predicate_locks specs/serializable shermanhandler \
	's/ampredlocks = true/ampredlocks = false/'
mutate no_parallel_scan sql/parallel shermanhandler \
	's/amcanparallel = true/amcanparallel = false/'

# ---- a build's sorts
mutate descending_column_ascends sql/build begin_tuples_sort \
	's/descending \? BTGreaterStrategyNumber : BTLessStrategyNumber/BTLessStrategyNumber/'
