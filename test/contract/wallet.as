// A contract account for tests that agrees to everything. AssemblyScript, never put on a real ledger.
export function __check_auth(_payload: u64, _signature: u64, _contexts: u64): u64 {
  return 2
}
