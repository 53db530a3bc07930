# Safeguards of streams and keys. Sourced by test/mutations.

mutate older_tls_allowed test_handshake rdma/stream.c \
	's/set_min_proto_version\(tls, TLS1_3_VERSION\)/set_min_proto_version(tls, TLS1_2_VERSION)/'
mutate certificate_in_place_of_key test_handshake rdma/stream.c \
	's/SSL_session_reused\(stream->ssl\) != 1/false/; s/SSL_VERIFY_PEER/SSL_VERIFY_NONE/'
mutate no_forward_secrecy test_handshake rdma/stream.c \
	's/SSL_CTX_clear_options\(tls, /SSL_CTX_set_options(tls, /'
mutate tickets_given test_handshake rdma/stream.c \
	's/SSL_CTX_set_num_tickets\(tls, 0\)/SSL_CTX_set_num_tickets(tls, 2)/'
mutate other_hash_allowed test_handshake rdma/stream.c \
	's/"TLS_AES_128_GCM_SHA256:/"TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256:/; s/\{0x13, 0x01\}/{0x13, 0x02}/'
mutate identity_cut_at_zero test_handshake rdma/stream.c \
	's/ \|\| memchr\(identity, .\\0., bytes\) != NULL//'
mutate tenant_before_the_end test_handshake rdma/stream.c \
	's/stream->ready \? stream->tenant : 0/stream->tenant/'
mutate kept_in_the_read test_handshake rdma/stream.c \
	's/stream->reads_left--;//'
mutate key_stays_with_connection test_stream rdma/stream.c \
	's/SSL_SESSION_set1_master_key\(session, zeroes, sizeof\(zeroes\)\);//'
mutate errors_left_for_others test_handshake rdma/stream.c \
	's/(refuse\(stream, text\);\n)\tERR_clear_error\(\);/$1/'
mutate errors_of_others_believed test_stream rdma/stream.c \
	's/(\nprepare\(Stream \*stream\)\n\{\n)\tERR_clear_error\(\);/$1/'
mutate signal_on_plain_end test_stream rdma/stream.c \
	's/bytes, MSG_DONTWAIT \| MSG_NOSIGNAL/bytes, MSG_DONTWAIT/'
mutate signal_on_tls_end test_stream rdma/stream.c \
	's/\(size_t\) bytes, MSG_DONTWAIT \| MSG_NOSIGNAL/(size_t) bytes, MSG_DONTWAIT/'
mutate rest_of_record_forgotten test_stream rdma/stream.c \
	's/!stream->drained && SSL_has_pending\(stream->ssl\) == 1/false/'
mutate part_of_record_is_pending test_stream rdma/stream.c \
	's/stream->drained = result != 1;/stream->drained = false;/'
mutate write_tied_to_its_address test_stream rdma/stream.c \
	's/ \| SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER//'

mutate key_file_mode_not_checked test_keys rdma/keys.c \
	's/\(state.st_mode & \(S_IRWXG \| S_IRWXO\)\) != 0/false/'
mutate key_file_owner_not_checked test_keys rdma/keys.c \
	's/state.st_uid != geteuid\(\) && state.st_uid != 0/false/'
mutate key_of_zeroes test_keys rdma/keys.c \
	's/return any != 0;/return any == any;/'
mutate key_of_two_tenants test_keys rdma/keys.c \
	's/memcmp\(other->key, key->key, sizeof\(key->key\)\) == 0/false/'
mutate sixteen_tenants test_keys rdma/keys.c \
	's/!known && tenants == FABRIC_MAX_TENANTS/false/'
mutate keys_not_overwritten test_keys rdma/keys.c \
	's/explicit_bzero\(keys, sizeof\(\*keys\)\);/keys->count = 0;/'
mutate identity_shows_the_key test_keys rdma/keys.c \
	's/"%02x", hash\[i\]/"%02x", key->key[i]/'
