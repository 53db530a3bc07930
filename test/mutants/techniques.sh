# Techniques that can be left out: that they are. Sourced by test/mutations.

mutate lock_always_combined test_techniques tree/lock.c \
	's/client->techniques.combine_lock &&/true \&\&/'
mutate unlock_always_combined test_techniques tree/lock.c \
	's/if \(!techniques->combine_unlock\)/if (false)/'
mutate writes_always_combined test_techniques tree/lock.c \
	's/tree->client->techniques.combine_unlock \? count : 1/count/'
mutate entries_always_written test_techniques tree/insert.c \
	's/tree->client->techniques.entry_writes\)/true)/'
mutate whole_leaf_split_early test_techniques tree/insert_full.c \
	's/\(whole && cells->leaf.count <= g->leaf_cells\)/(whole \&\& cells->leaf.count <= g->leaf_cells \/ 2)/'
