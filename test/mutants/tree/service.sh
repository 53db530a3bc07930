# Mutants of tree/service: its safeguards, removed one at a time (test/README). Sourced.

mutate half_landed_not_replayed test_redo image_half_landed \
	's/return seen_old && !seen_other;/return false;/'
mutate half_landed_by_others_replayed test_redo image_half_landed \
	's/return seen_old && !seen_other;/return seen_old;/'
mutate half_landed_inner_not_replayed test_redo image_half_landed \
	's/return node_sum\(target, bytes\) != target\[HEADER_SUM\];/return false;/'
mutate half_landed_cells_not_looked_at test_redo stamp_places \
	's/if \(words == 0\)\n\t\treturn true;/return true;/'
mutate half_landed_leaf_of_another_length test_redo stamp_places \
	's/return g\.leaf_bytes == bytes;/return true;/'
mutate later_rewrite_undone test_redo image_half_landed \
	's/if \(target\[HEADER_GENERATION\] != generation \|\| /if (/'
mutate old_redo_replayed test_redo service_half_landed \
	's/return dead->write_offset == target_offset && dead->write_bytes == target_bytes;/return true;/' \
	service_recover \
	's/if \(\(dead->write_offset == UINT64_MAX && !dead->write_unknown\) \|\| slot == NULL\)/if (slot == NULL)/'
mutate redo_not_replayed test_redo service_replay \
	's/\t\tmemcpy\(target, image, target_bytes\);/\t\t;/'
mutate replayed_whoever_has_the_lock test_replay chain_unfinished \
	's/word == header->lock_word;/true;/'
mutate lost_word_taken_for_unlocked test_replay chain_unfinished \
	's/ \|\| dead->others_dead//'
mutate replay_by_id test_tenants image_is_of_owner \
	's/return record != NULL && record->record.tree == image\[HEADER_TREE\] && tables_owns\(&owner, record\);/return record != NULL \&\& owner.tenant != 99 \&\& record->record.tree == image[HEADER_TREE];/'
mutate tenant_keeps_memory test_daemon service_drop_tenant \
	's/\(void\) tables_remove\(tables, record, service_now_us\(\)\);/break;/'
mutate epochs_of_the_forgotten test_tenants service_drop_tenant \
	's/tables_forget_epochs\(tables, tenant\);//'
mutate marks_of_others_believed test_resize units_agree \
	's/if \(record != NULL && tenant != record->tenant\)/if (false)/'
mutate marks_of_nobody_stay test_resize units_agree \
	's/\t\tfabric_server_release\(service->server, offset, FABRIC_UNIT_BYTES\);\n(\t\t\+\+\*released)/$1/'
mutate words_of_the_old_size test_resize make_room \
	's/\(end - first\) \/ FABRIC_UNIT_BYTES \* sizeof\(uint64_t\)\) != FABRIC_OK\)/UINT64_MAX) != FABRIC_OK \&\& first < end)/'
mutate ids_again test_daemon service_open_tables \
	's/if \(service->state == FABRIC_MEMORY_LOADED\)\s+tables_renumber\([^;]*;//s'
mutate local_tenant_has_no_name test_service service_tenant_name \
	's/tenant == 0 \? SERVICE_LOCAL_TENANT : //'
mutate quota_of_another_tenant "test_daemon test_tenants" service_quota \
	's/if \(strcmp\(quotas->quotas\[i\]\.tenant, service_tenant_name\(service, tenant\)\) == 0\)/if (quotas->count > 0)/'
mutate last_quota_not_found test_service service_quota \
	's/i < quotas->count; i\+\+/i + 1 < quotas->count; i++/'
mutate more_memory_than_is_served test_resize service_bytes_total \
	's/return has < service->options\.node_bytes \? has : service->options\.node_bytes;/return has;/'
mutate half_a_cluster_is_the_owner test_service service_owner \
	's/peer->cluster\[1\]\}/0}/'
mutate any_tenant_is_the_owner test_service service_owner \
	's/\.tenant = peer->tenant/.tenant = 0/'
mutate generations_begin_alike test_service generation_next \
	's/return \(random >> 2\) \| 1;/return random > 0;/'
mutate generations_of_extents_fall test_give generation_next \
	's/record->last_generation \+ GENERATION_STEP \+ random % GENERATION_STEP/(random >> 2) | 1/'
mutate extents_grow_by_call "test_service test_insert_many" extent_bytes_next \
	's/if \(bytes < used\)/if (false)/'
mutate extents_without_their_header test_service extent_bytes_next \
	's/\(wanted \+ FABRIC_STRIPE_BYTES \+ FABRIC_UNIT_BYTES - 1\)/(wanted + FABRIC_UNIT_BYTES - 1)/'
mutate wanted_beyond_the_largest test_service extent_bytes_next \
	's/used < EXTENT_MAX_BYTES \? used : EXTENT_MAX_BYTES/used/; s/\tassert\(bytes <= EXTENT_MAX_BYTES\);\n//'
mutate whole_extents_off_the_grid test_reclaim extent_bump \
	's/first \+ chunks_round_up\(bytes - first\)/bytes/'
mutate extents_grow_on test_service extent_bytes_next \
	's/while \(bytes < EXTENT_MAX_BYTES && /while (/; s/assert\(bytes <= EXTENT_MAX_BYTES\);//'
mutate extents_beyond_what_is_foreseen "test_service test_bulk_wave" extent_bytes_next \
	's/ && !all\)/ \&\& (all || true))/'
mutate extents_too_large test_service extent_bytes_next \
	's/bytes \* 2 \* EXTENT_PART <= tree_bytes/bytes * 2 <= tree_bytes/'
mutate create_twice_is_two test_calls call_create \
	's/ServiceRecord \*slot = tables_find_token\(.*?\);/ServiceRecord *slot = NULL;/'
mutate another_member_taken test_nodes call_update \
	's/if \(record\.record\.members\[i\] != 0 && record\.record\.members\[i\] != request->members\[i\]\)/if (false)/'
mutate record_not_copied test_replicas call_update \
	's/\(\(slot->record\.flags & TREE_RECORD_SHARE\) != 0 && !tree_record_replica\(&slot->record, &copy\)\)/(slot->record.flags \& TREE_RECORD_SHARE) != 0/'
mutate dropped_memory_not_counted test_rounds describe_memory \
	's/uint64_t had = use->bytes \+ use->going_bytes;/uint64_t had = use->bytes;/'
mutate figures_of_all_told test_tenants describe_memory \
	's/if \(tenant == 0\)/if (tenant < TABLES_TENANTS)/'
mutate epoch_goes_back test_service call_epoch \
	's/request->epoch < last \|\| //'
mutate share_without_home test_nodes share_make \
	's/record->record\.members\[request->home\] = request->home_member;//'
mutate call_twice_is_two test_service call_extent \
	's/record.record.extents > 0 && request->extents != record.record.extents/false/'
mutate newest_extent_given test_give call_give \
	's/request->offset == slot->last_offset \|\| //'
mutate root_given test_give call_give \
	's/\|\| root_is_in\(slot, request->offset\) \|\|/|| (slot != NULL \&\& false \&\& root_is_in(slot, 0)) ||/'
mutate given_of_copied_trees test_give call_give \
	's/\s+tree_record_replica\(&slot->record, &copy\) \|\| request->newer/ (copy = 0) != 0 || request->newer/'
mutate given_by_place_alone test_give call_give \
	's/if \(header->number != request->number\)/if (false)/'
mutate given_behind_any_header test_give call_give \
	's/if \(newer->previous != request->offset && newer->previous != header->previous\)/if (false)/'
mutate given_once_only test_give call_give \
	's/ && newer->previous != header->previous\)/)/'
mutate given_stays_in_the_list test_give call_give \
	's/__atomic_store_n\(&newer->previous, header->previous, __ATOMIC_SEQ_CST\);//'
mutate reply_not_cleared test_calls method_run \
	's/\n\tmemset\(&out, 0, methods\[method\]\.reply_bytes\);//' memory
mutate onlookers_change test_tenants service_call \
	's/peer->incarnation == 0 \|\| //'
mutate readers_change test_tenants service_call \
	's/ \|\| peer->reader//'
mutate descent_of_no_format test_descend descent_read \
	's/!format_valid\(&format\) \|\|/false ||/'
mutate descent_of_a_long_bound test_descend descent_read \
	's/request->norm_length > request->norm_bytes/false/'
mutate descent_of_any_side test_descend descent_read \
	's/request->side < -1 \|\|\s+request->side > 1/false/'
mutate descent_from_any_level test_descend descent_read \
	's/request->level == 0 \|\|\s+request->level >= LEVELS_MAX/false/'
mutate descent_of_a_cut_bound test_descend descent_read \
	's/return whole \|\| !bound->key\.cut;/return whole || true;/'
mutate descends_into_foreign_memory test_descend service_descend.c:node_take \
	's/ && tables_owner\(&service->tables, offset\) == record &&/ \&\&/'
mutate descends_through_unbelieved_nodes test_descend service_descend.c:node_take \
	's/ && node_check\(g, node, record->record.tree, pointer\) == NODE_GOOD//'
mutate descends_through_any_level test_descend service_descend.c:node_take \
	's/node_level\(node\) == level && //'
mutate descent_by_id test_tenants service_descend.c:node_take \
	's/tables_owner\(&service->tables, offset\) == record &&/tables_owner(\&service->tables, offset) != NULL \&\& tables_owner(\&service->tables, offset)->record.tree == record->record.tree \&\&/'
mutate descends_for_onlookers test_descend service_descend \
	's/\tif \(peer->incarnation == 0\)\n\t\treturn FABRIC_DENIED;\n//'
mutate descends_in_any_tree test_descend service_descend \
	's/\tif \(record == NULL\)\n\t\treturn FABRIC_NOT_FOUND;\n//'
mutate descends_beside_the_bound test_descend service_descend \
	's/ \|\| choice\.bound_below \|\| choice\.bound_above//'
mutate second_copy_of_an_extent test_replicas replica_find \
	's/ && copy->offset == offset\)/ \&\& copy->offset == offset + 1)/'
mutate all_extents_in_one_round test_rounds replica_find \
	's/for \(uint32_t looked = 0; looked < TABLES_ROUND; looked\+\+\)/for (;;)/'
mutate unit_runs_behind_the_last test_unit_runs service_runs.c:block_sum \
	's/first \+ i < runs->count && runs->units/first + i < runs->blocks * RUNS_BLOCK_UNITS \&\& runs->units/'
mutate unit_runs_meet_nowhere test_unit_runs add_sums \
	's/\tif \(left->end \+ right->begin > sum\.most\)\n\t\tsum\.most = left->end \+ right->begin;\n//'
mutate unit_run_of_all_begins_left test_unit_runs add_sums \
	's/\tif \(left->begin == length\)\n\t\tsum\.begin \+= right->begin;\n//'
mutate unit_run_of_all_ends_right test_unit_runs add_sums \
	's/\tif \(right->end == length\)\n\t\tsum\.end \+= left->end;\n//'
mutate unit_runs_of_the_left test_unit_runs add_sums \
	's/left->most > right->most \? left->most : right->most/left->most/'
mutate unit_runs_one_block_too_few test_unit_runs runs_open \
	's/while \(runs->blocks \* RUNS_BLOCK_UNITS < count\)/while (runs->blocks * RUNS_BLOCK_UNITS < count - count \% RUNS_BLOCK_UNITS)/'
mutate unit_runs_last_block_unchanged test_unit_runs runs_changed \
	's/\(unit \+ count - 1\) \/ RUNS_BLOCK_UNITS/unit \/ RUNS_BLOCK_UNITS/'
mutate unit_runs_before_the_begin test_unit_runs search_block \
	's/unit >= search->begin && search->runs/search->runs/' \
	search_sum \
	's/first >= search->begin && first \+ length <= search->end/first + length <= search->end/'
mutate unit_runs_in_the_block_before_the_begin test_unit_runs search_block \
	's/unit >= search->begin && search->runs/search->runs/'
mutate unit_runs_one_behind_the_end test_unit_runs search_block \
	's/unit < search->end; unit/unit <= search->end \&\& unit < search->runs->count; unit/'
mutate unit_runs_passed_over_when_long_enough test_unit_runs search_sum \
	's/if \(sum->most < search->count\)/if (sum->most <= search->count)/'
mutate unit_runs_from_before_one_too_few test_unit_runs search_sum \
	's/search->run \+ sum->begin >= search->count/search->run + sum->begin + 1 >= search->count/'
mutate unit_runs_from_before_forgotten test_unit_runs search_sum \
	's/search->run = sum->end == length \? search->run \+ length : sum->end;/search->run = sum->end;/'
mutate unit_runs_right_half_first test_unit_runs search_sum \
	's/return search_sum\(search, 2 \* i, first, length \/ 2\) \|\|\s+search_sum\(search, 2 \* i \+ 1, first \+ length \/ 2, length \/ 2\);/return search_sum(search, 2 * i + 1, first + length \/ 2, length \/ 2) ||\n\t       search_sum(search, 2 * i, first, length \/ 2);/'
mutate replicas_of_half_units test_service bytes_fewer \
	's/return bytes \/ 2 \/ FABRIC_UNIT_BYTES \* FABRIC_UNIT_BYTES;/return bytes \/ 2;/'
mutate reserve_of_quota_granted test_service quota_allows \
	's/uint64_t quota = without_reserve\(service_quota\(service, tenant\), first\);/uint64_t quota = service_quota(service, tenant);\n\t(void) first;/'
mutate quota_not_looked_at test_service quota_allows \
	's/return use->bytes \+ \*bytes <= quota \? FABRIC_BUSY : FABRIC_QUOTA;/return FABRIC_OK;/'
mutate more_than_asked_for test_resize size_allows \
	's/return used \+ \*bytes <= total;/return true;/; s/while \(\*bytes > EXTENT_MIN_BYTES && used \+ \*bytes > total\)/while (false)/'
mutate reserve_of_memory_granted test_service size_allows \
	's/uint64_t total = without_reserve\(service_bytes_total\(service\), first\);/uint64_t total = service_bytes_total(service);\n\t(void) first;/'
mutate file_system_taken_for_node test_service service_extent_take \
	's/full = FABRIC_HOST_FULL;/full = FABRIC_NO_MEMORY;/'
mutate trees_without_bound test_resize service_slot \
	's/if \(service->tables\.trees >= service->max_trees\)/if (false)/'
mutate trees_for_the_greedy test_tenants service_slot \
	's/if \(!fabric_server_leaves_enough\(service->server, tenant, service->max_trees, used\)\)/if (used[0] > 99999)/'
mutate full_while_in_quarantine test_rounds service_slot \
	's/service->tables.quarantined > 0 \? FABRIC_BUSY : FABRIC_NO_MEMORY/FABRIC_NO_MEMORY/'
mutate dropped_trees_not_counted test_rounds service_slot \
	's/had\[i\] = \(uint32_t\) \(use->trees \+ use->going_trees\);/had[i] = (uint32_t) use->trees;/'
mutate journal_left_out test_tables journal_store \
	's/word_store\(&journal->valid, 1\);\s+journal_apply\(tables\);/for (size_t i = 0; i < bytes \/ 8; i++) word_store((uint64_t *) target + i, ((const uint64_t *) data)[i]);/s'
mutate tenants_shares_by_token two_tenants service_tables.c:slot_enter \
	's/if \(\(record->record.flags & TREE_RECORD_SHARE\) == 0\)\n\t\{\n\t\tslot->token_list/if (true)\n\t{\n\t\tslot->token_list/'
mutate journal_not_checked test_tables tables_check \
	's/if \(!journal_is_sane\(tables\)\)\s+return false;//'
mutate tenants_of_records_not_checked test_tables records_open \
	's/record->tenant >= TABLES_TENANTS \|\| //' \
	service_tables.c:slot_enter \
	's/trees\+\+;\n\ttables->tenants/trees++;\n\tif (record->tenant < TABLES_TENANTS)\n\ttables->tenants/' \
	slots_open \
	's/\ttables->tenants\[slot->tenant\].bytes \+= bytes;/\tif (slot->tenant < TABLES_TENANTS)\n\ttables->tenants[slot->tenant].bytes += bytes;/'
mutate last_extent_not_checked test_tables slots_open \
	's/if \(!last_extent_is_there\(tables, record, i - 1\)\)\s+return false;//' \
	last_extent_is_there \
	's/static bool\nlast_extent_is_there/static inline bool\nlast_extent_is_there/'
mutate tenant_not_looked_at test_tables tables_owns \
	's/record->tenant == owner->tenant && //'
mutate trees_of_clusters test_tenants tables_owns \
	's/record->tenant == owner->tenant && record->record.cluster\[0\] == owner->cluster\[0\] &&\s+record->record.cluster\[1\] == owner->cluster\[1\]/record->tenant == owner->tenant/'
mutate trees_of_others test_tenants tables_find \
	's/tables->slots\[i - 1\].tree == tree && tables_owns\(owner, &tables->records\[i - 1\]\)/(owner != NULL \&\& tables->slots[i - 1].tree == tree)/'
mutate id_in_use_given test_tenants tables_id \
	's/if \(!id_is_taken\(tables, tree\)\)/if (!id_is_taken(tables, tree) || true)/'
mutate epochs_for_the_greedy test_tenants tables_epoch \
	's/epochs\[owner->tenant\]\[i\]/epochs[0][i]/' \
	tables_epoch_set \
	's/epochs\[owner->tenant\]\[i\]/epochs[0][i]/2'
mutate tenants_epochs_of_all two_tenants tables_epoch \
	's/epochs\[owner->tenant\]\[i\]/epochs[0][i]/' \
	tables_epoch_set \
	's/epochs\[owner->tenant\]\[i\]/epochs[0][i]/2' \
	tables_epoch \
	's/memcmp\(&epoch->owner, owner, sizeof\(\*owner\)\) == 0/true/'
mutate pending_not_swept test_tables tables_units_open \
	's/if \(\(tables->units\[unit\] & UNIT_PENDING\) != 0\)/if (false)/'
mutate slots_of_units_not_checked test_tables tables_units_open \
	's/ \|\|\s+slot >= tables->max_trees\)/)/'
mutate given_marks_not_checked test_tables tables_units_open \
	's/if \(\(tables->units\[unit\] & UNIT_GIVEN\) != 0\)\n\t\t\treturn FABRIC_PROTOCOL;//'
mutate given_has_an_owner test_tables tables_owner \
	's/\(UNIT_PENDING \| UNIT_GIVEN\)\) != 0\)\n\t\treturn NULL;/UNIT_PENDING) != 0)\n\t\treturn NULL;/'
mutate given_extent_of_others test_give tables_extent_at \
	's/tables->units\[unit\] != \(\(\(uint64_t\) \(slot - tables->records\) \+ 1\) \| UNIT_FIRST\)/(tables->units[unit] \& UNIT_FIRST) == 0/' \
	tables_extent_give \
	's/assert\(offset != slot->last_offset\);//; s/assert\(of->units > count\);//'
mutate given_marked_from_its_end test_tables tables_extent_give \
	's/unit_store\(tables, unit \+ i, tables->units\[unit \+ i\] \| UNIT_GIVEN\);/unit_store(tables, unit + count - 1 - i, tables->units[unit + count - 1 - i] | UNIT_GIVEN);/'
mutate extent_freed_from_its_begin test_tables extent_free \
	's/unit_store\(tables, unit \+ i - 1, 0\);/unit_store(tables, unit + count - i, 0);/'
mutate given_without_quarantine test_give given_end \
	's/if \(link->due_us > now_us\)/if (link->due_us > now_us + 1000000)/'
mutate all_units_freed_in_one_round test_rounds given_end \
	's/ && freed < QUARANTINE_FREE_UNITS\)/)/'
mutate no_quarantine test_service tables_quarantine_end \
	's/tables->slots\[tables->going_first - 1\].due_us <= now_us/(now_us > 0)/'
mutate removal_horizon_goes_back test_reader raise_removal \
	's/younger > 0/true/'
mutate removal_horizon_begins_anew test_reader raise_removal \
	's/younger > 0/request->removal_horizon > record->removal_horizon/'
