# Safeguards of postings. Sourced by test/mutations.

mutate posting_not_searched test_posting leaf_survey \
	's/if \(survey->same_tid == LEAF_NO_SLOT && \(node_flags\(node\) & NODE_POSTINGS\) != 0\)/if (false)/'
mutate posting_block_cut test_posting posting_reaches \
	's/return \(cell_block\(head\[0\]\) \^ cell_block\(word0\)\) >> POSTING_BLOCK_BITS == 0;/return head != NULL || word0 != 0;/'
mutate posting_without_end test_posting packer_joins \
	's/packer->tids <= POSTING_CELLS_MAX \* g->posting_tids/packer->tids <= LEAF_ENTRIES_MAX/'
mutate posting_dead_with_its_head test_posting candidates_take \
	's/\t\t\tcandidates_add_posting\(/\t\t\tif (cell_state(head[0]) == CELL_LIVE)\n\t\t\tcandidates_add_posting(/'
mutate posting_dropped_with_its_head test_posting gather_base \
	's/if \(posting_get\(cell, i\) == 0\)\n\t\t\t\tcontinue;/if (posting_get(cell, i) == 0 || cell_state(head[0]) != CELL_LIVE)\n\t\t\t\tcontinue;/'
mutate posting_leftover_kept test_posting gather_base \
	's/if \(slot == skip && without != NULL/if (false \&\& slot == skip \&\& without != NULL/'
mutate posting_cut_in_two test_posting leaf_cut_possible \
	's/if \(cell_is_posting\(cells\[cut\]\)\)\n\t\treturn false;//'
mutate posting_searched_as_key test_posting base_find \
	's/uint32_t middle = posting_head\(g, leaf, \(low \+ high\) \/ 2\);/uint32_t middle = (low + high) \/ 2;/; s/low = base_next\(g, leaf, middle\);/low = middle + 1;/'
mutate posting_key_is_its_own test_posting tree_batch_key \
	's/slot = posting_head\(g, scan->leaf, batch->entries\[i\].cell\);/slot = batch->entries[i].cell;/'
mutate posting_not_vacuumed test_posting posting_choose \
	's/dead \|= \(uint8_t\) \(1u << i\);/dead |= 0;/'
mutate duplicates_not_merged test_posting insert_gather \
	's/leaf_pack\(&in->tree->geometry, cells\);//'
mutate duplicates_not_loaded_together test_posting bulk_pack \
	's/packer_add\(g, &bulk->packer, bulk->cell\);/bulk->packer.tids = 0; packer_add(g, \&bulk->packer, bulk->cell);/; s/packer_takes_cell\(g, &bulk->packer, bulk->cell\)/true/'
mutate posting_stray_unnoticed "test_posting test_check" leaf_posting_stray \
	's/if \(length > POSTING_CELLS_MAX \|\| \(length > 0 && \(!allowed \|\| slot >= node_count\(node\)\)\)\)/if (false \&\& allowed)/'
mutate whole_posting_dead_with_its_head test_posting base_put \
	's/if \(head == NULL \|\| !g->format.postings/if (cell_state(head[0]) != CELL_LIVE)\n\t\t\t\tcontinue;\n\t\t\tif (head == NULL || !g->format.postings/'
mutate whole_tail_behind_the_posting test_posting posting_put \
	's/if \(tail->next < tail->count && !tail_put_before\(scan, tail, entry\)\)/if (false)/'
mutate posting_view_is_its_own test_posting tree_batch_views \
	's/if \(cell_is_posting\(cell\)\)\n\t\t\tcell = /if (false)\n\t\t\tcell = /'
mutate postings_estimated_as_cells test_estimate estimate_from_root \
	's/\(sampled > usual \? sampled : usual\)/usual/'
mutate plan_asks_for_the_memory test_estimate tree_estimate_nodes \
	's/\tstatus = estimate_nodes\(handle, statistics\);/\tstatus = estimate_nodes(handle, statistics);\n\tif (status == TREE_OK \&\& statistics->extent_bytes == 0)\n\t{\n\t\tTreeRecord record;\n\n\t\tstatus = tree_record_read(handle->client, handle->tree, tree_home(handle->root), \&record);\n\t}/'
mutate estimate_without_a_leaf test_estimate estimate_nodes \
	's/if \(statistics->leaves == 0\)/if (false)/'
