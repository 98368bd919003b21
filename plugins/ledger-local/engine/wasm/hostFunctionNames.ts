// The names of host functions in the network's diagnostics, by the short names under which contracts import them:
// `a._` is `require_auth_for_args`.

/** By module: the short names, each one character, and the long ones in the same order. */
const named: Readonly<Record<string, readonly [short: string, long: string]>> = {
  x: [
    "_012345678",
    "log_from_linear_memory obj_cmp contract_event get_ledger_version get_ledger_sequence get_ledger_timestamp " +
      "fail_with_error get_ledger_network_id get_current_contract_address get_max_live_until_ledger"
  ],
  i: [
    "_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNO",
    "obj_from_u64 obj_to_u64 obj_from_i64 obj_to_i64 obj_from_u128_pieces obj_to_u128_lo64 obj_to_u128_hi64 " +
      "obj_from_i128_pieces obj_to_i128_lo64 obj_to_i128_hi64 obj_from_u256_pieces u256_val_from_be_bytes " +
      "u256_val_to_be_bytes obj_to_u256_hi_hi obj_to_u256_hi_lo obj_to_u256_lo_hi obj_to_u256_lo_lo " +
      "obj_from_i256_pieces i256_val_from_be_bytes i256_val_to_be_bytes obj_to_i256_hi_hi obj_to_i256_hi_lo " +
      "obj_to_i256_lo_hi obj_to_i256_lo_lo u256_add u256_sub u256_mul u256_div u256_rem_euclid u256_pow u256_shl " +
      "u256_shr i256_add i256_sub i256_mul i256_div i256_rem_euclid i256_pow i256_shl i256_shr " +
      "timepoint_obj_from_u64 timepoint_obj_to_u64 duration_obj_from_u64 duration_obj_to_u64 u256_checked_add " +
      "u256_checked_sub u256_checked_mul u256_checked_pow i256_checked_add i256_checked_sub i256_checked_mul " +
      "i256_checked_pow"
  ],
  m: [
    "_0123456789abc",
    "map_new map_put map_get map_del map_len map_has map_key_by_pos map_val_by_pos map_keys map_values " +
      "map_new_from_linear_memory map_unpack_to_linear_memory sparse_map_new_from_linear_memory " +
      "sparse_map_unpack_to_linear_memory"
  ],
  v: [
    "_0123456789abcdefgh",
    "vec_new vec_put vec_get vec_del vec_len vec_push_front vec_pop_front vec_push_back vec_pop_back vec_front " +
      "vec_back vec_insert vec_append vec_slice vec_first_index_of vec_last_index_of vec_binary_search " +
      "vec_new_from_linear_memory vec_unpack_to_linear_memory"
  ],
  l: [
    "_0123456789abcdefghij",
    "put_contract_data has_contract_data get_contract_data del_contract_data create_contract " +
      "create_asset_contract upload_wasm update_current_contract_wasm extend_contract_data_ttl " +
      "extend_current_contract_instance_and_code_ttl extend_contract_instance_and_code_ttl get_contract_id " +
      "get_asset_contract_id extend_contract_instance_ttl extend_contract_code_ttl " +
      "create_contract_with_constructor extend_contract_data_ttl_v2 extend_contract_instance_and_code_ttl_v2 " +
      "create_executable_tag create_external_ref_contract update_current_contract_executable_ref"
  ],
  d: ["_0", "call try_call"],
  b: [
    "_0123456789abcdefghijklmno",
    "serialize_to_bytes deserialize_from_bytes bytes_copy_to_linear_memory bytes_copy_from_linear_memory " +
      "bytes_new_from_linear_memory bytes_new bytes_put bytes_get bytes_del bytes_len bytes_push bytes_pop " +
      "bytes_front bytes_back bytes_insert bytes_append bytes_slice string_copy_to_linear_memory " +
      "symbol_copy_to_linear_memory string_new_from_linear_memory symbol_new_from_linear_memory string_len " +
      "symbol_len symbol_index_in_linear_memory string_to_bytes bytes_to_string"
  ],
  c: [
    "_0123456789abcdefghijklmnopqrstuvwxyz",
    "compute_hash_sha256 verify_sig_ed25519 compute_hash_keccak256 recover_key_ecdsa_secp256k1 " +
      "verify_sig_ecdsa_secp256r1 bls12_381_check_g1_is_in_subgroup bls12_381_g1_add bls12_381_g1_mul " +
      "bls12_381_g1_msm bls12_381_map_fp_to_g1 bls12_381_hash_to_g1 bls12_381_check_g2_is_in_subgroup " +
      "bls12_381_g2_add bls12_381_g2_mul bls12_381_g2_msm bls12_381_map_fp2_to_g2 bls12_381_hash_to_g2 " +
      "bls12_381_multi_pairing_check bls12_381_fr_add bls12_381_fr_sub bls12_381_fr_mul bls12_381_fr_pow " +
      "bls12_381_fr_inv bn254_g1_add bn254_g1_mul bn254_multi_pairing_check poseidon_permutation " +
      "poseidon2_permutation bn254_g1_msm bn254_fr_add bn254_fr_sub bn254_fr_mul bn254_fr_pow bn254_fr_inv " +
      "bls12_381_g1_is_on_curve bls12_381_g2_is_on_curve bn254_g1_is_on_curve"
  ],
  a: [
    "_0123456789a",
    "require_auth_for_args require_auth strkey_to_address address_to_strkey authorize_as_curr_contract " +
      "get_address_from_muxed_address get_id_from_muxed_address get_address_executable strkey_to_muxed_address " +
      "muxed_address_to_strkey get_delegated_signers_for_current_auth_check delegate_account_auth"
  ],
  p: ["_012", "prng_reseed prng_bytes_new prng_u64_in_inclusive_range prng_vec_shuffle"]
}

const names: ReadonlyMap<string, string> = new Map(
  Object.entries(named).flatMap(([module, [short, long]]) =>
    long.split(" ").map((name, i): readonly [string, string] => [`${module}.${short[i]}`, name])
  )
)

/** The long name of a host function, such as `a._`; otherwise the short name. */
export const hostFunctionName = (id: string): string => names.get(id) ?? id
