// Names for the discriminants of the ledger's unions. XDR has the names, its generated types only the numbers.

/** Of ledger entries and of their keys. */
export const EntryType = {
  account: 0,
  trustLine: 1,
  offer: 2,
  data: 3,
  claimableBalance: 4,
  liquidityPool: 5,
  contractData: 6,
  contractCode: 7,
  configSetting: 8,
  ttl: 9
} as const

/** Of contract values. */
export const ScType = {
  bool: 0,
  void: 1,
  error: 2,
  u32: 3,
  i32: 4,
  u64: 5,
  i64: 6,
  timepoint: 7,
  duration: 8,
  u128: 9,
  i128: 10,
  u256: 11,
  i256: 12,
  bytes: 13,
  string: 14,
  symbol: 15,
  vec: 16,
  map: 17,
  address: 18,
  contractInstance: 19,
  ledgerKeyContractInstance: 20,
  ledgerKeyNonce: 21,
  executableTag: 22
} as const

/** A contract's own error; the others are the host's. */
export const ScErrorType = { contract: 0 } as const

export const AddressType = { account: 0, contract: 1, muxedAccount: 2, claimableBalance: 3, liquidityPool: 4 } as const

export const ExecutableType = { wasm: 0, stellarAsset: 1, externalRef: 2 } as const

export const HostFunctionType = { invokeContract: 0, createContract: 1, uploadWasm: 2, createContractV2: 3 } as const

export const AuthorizedFunctionType = { contract: 0, createContract: 1, createContractV2: 2 } as const

/** The preimage of a contract's id. */
export const PreimageType = { address: 0, asset: 1 } as const

export const CredentialsType = { sourceAccount: 0, address: 1, addressV2: 2, addressWithDelegates: 3 } as const

export const EventType = { system: 0, contract: 1, diagnostic: 2 } as const

export const EnvelopeType = { v0: 0, transaction: 2, feeBump: 5 } as const

export const MemoType = { none: 0, text: 1, id: 2, hash: 3, return: 4 } as const

export const PreconditionsType = { none: 0, time: 1, v2: 2 } as const

/** Of an account that may carry an id. */
export const AccountType = { ed25519: 0, muxed: 256 } as const

export const SignerKeyType = { ed25519: 0, preAuthTx: 1, hashX: 2, signedPayload: 3 } as const

export const AssetType = { native: 0, alphaNum4: 1, alphaNum12: 2, poolShare: 3 } as const

export const ClaimAtomType = { v0: 0, orderBook: 1, liquidityPool: 2 } as const
