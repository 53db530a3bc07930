# Many entries inserted together: what insert_wave.c, insert_spread.c, downlink_wave.c, lock_many.c and wave.c make sure.
mutate wave_takes_what_others_hold test_insert_many_faults entry_try \
	's/owned = entry->owner == 0;/owned = true;/'
mutate wave_high_fence_not_asked test_insert_many_faults insert_wave.c:leaf_accept \
	's/high = entry_decide\(many, i, leaf->image \+ g->high_word, DECIDE_BELOW\);/high = DECIDE_BELOW;/'
mutate wave_takes_hits test_insert_many entry_is_plain \
	's/return survey.same_tid == LEAF_NO_SLOT;/return true;/'
mutate wave_takes_twins test_insert_many entry_is_plain \
	's/if \(entry > leaf->first \&\& many_key/if (false \&\& many_key/'
mutate wave_position_not_raised test_insert_many slots_write \
	's/leaf->stamped = insert_set_wal_position\(tree, many->wal, node\);/leaf->stamped = false;/'
mutate spread_position_not_raised test_insert_many many_spread \
	's/leaf->stamped = insert_set_wal_position\(tree, many->wal, leaf->image\);//'
mutate spread_not_told test_insert_many many_spread \
	's/leaf_split_announce\(tree, leaf->path.pointer, many->siblings\[leaf->first_sibling \+ i\].pointer\);/state_split_begins(tree->state);/; s/\A/#include "tree\/shared\/state.h"\n\n/'
mutate spread_end_not_told test_insert_many leaf_wrote \
	's/\tsplit_over\(tree, status\);/\t;/'
mutate spread_siblings_behind_leaf test_insert_many_faults wave_write \
	's/if \(leaf_is_written\(&many->leaves\[i\]\) && siblings_write\(many, &many->leaves\[i\]\)\)/if (false)/; s/whole_write\(many, leaf\);\n/whole_write(many, leaf), (void) siblings_write(many, leaf);\n/'
mutate spread_without_downlinks test_insert_many wave_downlinks \
	's/return count == 0/return count < UINT32_MAX/'
mutate spread_separator_not_least test_insert_many cut_separator \
	's/if \(cell_state\(separator\[0\]\) != SEPARATOR_FULL \|\| g->format.lossless\)/if (true)/'
mutate wave_keeps_new_leaves_unasked test_leaf_writes siblings_cache \
	's/(\t\tleaf_cache_split\(many->tree, leaf->path.pointer, &)sibling->key/\t\tLeafKey key = leaf_cache_key(many->tree, sibling->pointer);\n\n$1key/'
mutate new_leaves_of_waves_not_kept test_leaf_writes leaf_wrote \
	's/\t\tsiblings_cache\(many, leaf\);\n/\t\t(void) siblings_cache;\n/'
mutate downlink_wave_one_by_one test_insert_many=--network links_left \
	's/bool waits = !last && /bool waits = false \&\& /'
mutate downlink_wave_does_not_ask test_insert_many_faults downlink_wave.c:parent_place \
	's/place = downlink_place\(&insertion, node, &index\);/place = DOWNLINK_HERE; index = node_count(node);/'
mutate wave_lost_write_is_done test_insert_many_faults leaf_wrote \
	's/state = status == TREE_OK \? MANY_DONE : MANY_WAITS;/state = MANY_DONE;/'
mutate wave_lost_chain_not_settled test_insert_many_faults wave_end \
	's/wave->statuses\[node\] = access_lost\(tree, node\);/;/'
mutate wave_doubt_gives_back test_insert_many_faults lock_many_release \
	's/if \(\(client->doubt & 1ull << lock->place\) == 0\)/if (true)/'
mutate wave_leaked_for_ever test_insert_many_faults leaked_settle \
	's/(\tleaked_release\(client, waiter, node\);)/\t;/'
mutate waves_do_not_stop test_insert_many_faults insert_some \
	's/if \(client_should_stop\(many->tree->client\)\)/if (false)/'

# ---- the order of a call's entries
mutate wave_high_keys_first test_insert_many entries_order \
	's/return a->high \? 1 : -1;/return a->high ? -1 : 1;/'
mutate wave_last_run_left_out test_insert_many runs_merge_all \
	's/start < many->count; start/start + length < many->count; start/'
mutate wave_neighbors_taken_for_ordered test_insert_many runs_merge_all \
	's/middle == count \|\| entries_order\(many, &from\[start \+ middle - 1\], &from\[start \+ middle\]\) <= 0/true/'
mutate wave_order_left_in_the_other_buffer test_insert_many many_sort \
	's/\tif \(from != many->entries\)\n\t\tmemcpy/\tif (false)\n\t\tmemcpy/'
mutate wave_first_word_alone_orders test_insert_many norms_order \
	's/uint32_t i = first_word; i < g->norm_words/uint32_t i = first_word; i < 1 \&\& i < g->norm_words/'
mutate wave_redo_image_shares_a_chain test_insert_many wave_add_together \
	's/\tif \(count > 1 && wave->filling\[memory_node\] != NULL\)\n\t\tchain_post\(wave, wave->filling\[memory_node\]\);\n\tfor/\tfor/'
mutate wave_redo_image_waits_for_others test_insert_many wave_add_together \
	's/(wave_add\(wave, memory_node, &ops\[i\]\);\n)\tif \(count > 1 && wave->filling\[memory_node\] != NULL\)\n\t\tchain_post\(wave, wave->filling\[memory_node\]\);\n/$1/'

# ---- keys that may have one entry only
mutate wave_alone_not_looked_for test_insert_many_alone many_shown_alone \
	's/return leaf_has_no_equal_key\(g, leaf->image, many->cell\);/return true;/'
mutate wave_alone_but_for_its_own test_insert_many_alone many_shown_alone \
	's/if \(entry > leaf->first && !many_differs\(many, entry\)\)/if (false)/'
mutate wave_alone_without_permit test_insert_many_alone entry_may_be_placed \
	's/ && many_permitted\(many, entry\)//'
mutate wave_permits_last test_insert_many_alone wave_fill \
	's/\tmany_permits_end\(many\);\n//'
mutate wave_alone_behind_what_is_barred test_insert_many_alone wave_judge \
	's/\t\tif \(many->alone && !leaf_is_through\(many, i\)\)\n\t\t\tbreak;\n/\t\t(void) leaf_is_through;\n/'
mutate wave_alone_behind_what_no_wave_takes test_insert_many_alone leaf_is_through \
	's/many->leaves\[leaf\]\.placed == end - many->leaves\[leaf\]\.first/many->leaves[leaf].placed == many->leaves[leaf].end - many->leaves[leaf].first + 0 * end/'
mutate wave_alone_beside_what_is_barred test_insert_many_alone insert_wave.c:leaf_accept \
	's/if \(many->alone \|\| low == DECIDE_BELOW/if (low == DECIDE_BELOW/'
mutate single_of_a_wave_not_alone test_insert_many_alone alone_single \
	's/status =\n\t\t\ttree_insert_alone\(many->tree, many_key\(many, many->next\), many->wal, many->permit, &hit, &alone\);/status = tree_insert(many->tree, many_key(many, many->next), many->wal, \&hit);/'
mutate single_without_waves_not_alone test_insert_many_alone insert_each_alone \
	's/status = tree_insert_alone\(tree, &keys\[\*done\], wal, permit, &hit, &alone\);/status = tree_insert(tree, \&keys[*done], wal, \&hit); (void) permit;/'
mutate mapped_single_not_alone test_insert_many_alone=--mapped entry_insert \
	's/\tif \(many->alone\)\n\t\tstatus = insert_found_alone/\tif (false)\n\t\tstatus = insert_found_alone/'
mutate mapped_single_before_others_leaves test_insert_many_alone=--mapped wave_take \
	's/\t\treturn \*status == TREE_OK && entry->state == MANY_DONE;/\t\treturn *status == TREE_OK;/'
mutate alone_in_any_order test_insert_many_alone tree_insert_many_alone \
	's/\tif \(!keys_ascend\(handle, keys, count\)\)/\tif (false)/'
