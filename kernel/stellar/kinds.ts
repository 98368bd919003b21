// Discriminants of the ledger's XDR by name, as the protocol numbers them. Only this folder uses them; other code reads
// and makes XDR through the functions in this folder.

export const envelopeKind = { v0: 0, v1: 2, feeBump: 5 } as const
export const operationKind = {
  createAccount: 0,
  payment: 1,
  accountMerge: 8,
  bumpSequence: 11,
  invokeHostFunction: 24
} as const
export const hostFunctionKind = { invokeContract: 0 } as const
/** Of an invocation's authorized function. */
export const authorizedKind = { contractFunction: 0 } as const
export const credentialsKind = { sourceAccount: 0, address: 1, addressV2: 2 } as const
export const valueKind = {
  bool: 0,
  void: 1,
  u32: 3,
  u64: 5,
  i128: 10,
  bytes: 13,
  symbol: 15,
  vec: 16,
  map: 17,
  address: 18,
  contractInstance: 19,
  instanceKey: 20,
  nonceKey: 21
} as const
export const addressKind = { account: 0, contract: 1, muxedAccount: 2 } as const
/** Of a public key, and of an account that may carry a number in addition. */
export const keyKind = { ed25519: 0 } as const
/** Of a further signer that a transaction requires, in addition to its source. */
export const signerKind = { hash: 2 } as const
export const memoKind = { none: 0, hash: 3 } as const
export const conditionKind = { none: 0, v2: 2 } as const
export const assetKind = { native: 0 } as const
export const entryKind = { account: 0, trustline: 1, contractData: 6 } as const
export const durability = { temporary: 0, persistent: 1 } as const
export const eventKind = { contract: 1 } as const
/** Of a contract's executable. */
export const executableKind = { wasm: 0 } as const
/** Of a hash's preimage. */
export const preimageKind = { sorobanAuthorization: 9, sorobanAuthorizationWithAddress: 10 } as const
/** Of a transaction: with resource data or without. */
export const extensionKind = { none: 0, soroban: 1 } as const
/** Versions of a transaction's meta that hold contract events. */
/** Of entries before the transaction, or restored by it. */
export const changeKind = { state: 3, restored: 4 } as const
export const metaKind = { v3: 3, v4: 4 } as const
/** Results of a successful transaction, with or without a fee bump around it. */
export const resultKind = { success: 0, bumpSuccess: 1 } as const
