// The wire of receipts as types; `README.md` specifies every format byte for byte. A verifier needs nothing else from
// this plugin.

/** Key of our receipt in `extensions`. */
export const receiptKey = "tollkeeper-receipt"
/** Key of the draft's attestation in `extensions`. */
export const attestationKey = "facilitator-attestation"

/** Header of the compact JWS. Its canonical form has the members in this order. */
export interface ReceiptHeader {
  readonly alg: "EdDSA"
  /** `did:web:HOST#receipt-KEYID`. */
  readonly kid: string
  readonly typ: "tollkeeper-receipt+jws"
}

/** Claims of a receipt. Amounts are decimal strings of atomic units, the fee of stroops. */
export interface ReceiptClaims {
  readonly v: 1
  readonly iss: string
  /** CAIP-2, `stellar:…` in either dialect. */
  readonly network: string
  /** 64 hex. */
  readonly transaction: string
  readonly ledger: number
  /** Seconds since 1970. */
  readonly closedAt: number
  readonly payer: string
  readonly payTo: string
  readonly asset: string
  readonly amount: string
  readonly scheme: string
  readonly settlement: string
  readonly attempts: number
  readonly fee: string
  /** RPC endpoints that showed the outcome; absent for outcomes of earlier versions. */
  readonly confirmations?: 1 | 2
  /** The scheme's action if it is not a direct payment: `deposit`, `claim`, `settle`, `refund`, `withdraw`. */
  readonly action?: string
  /** Id of the channel that the action is about, 64 hex. */
  readonly channel?: string
  /** By channel id: the total that the transaction claims of it since the channel began. */
  readonly totals?: Readonly<Record<string, string>>
  readonly resource?: string
  /** `sha256:HEX`; replaces a long `resource`. */
  readonly resourceHash?: string
  /** `sha256:HEX`. */
  readonly identifierHash?: string
}

/** The value of `extensions["tollkeeper-receipt"]`. */
export interface ReceiptExtension {
  readonly info: { readonly format: "jws"; readonly receipt: string }
}

export interface AttestationPayload {
  readonly version: 1
  readonly network: string
  readonly transaction: string
  readonly payer: string
  readonly payee: string
  readonly asset: string
  readonly amount: string
  readonly facilitator: string
  readonly facilitatorFee: string
  /** Seconds since 1970, decimal. */
  readonly observedAt: string
}

export interface Attestation {
  readonly format: "eip712"
  readonly payload: AttestationPayload
  /** `0x` and 65 bytes r‖s‖v. */
  readonly signature: string
}

/** First byte of an entry of the log. */
export const entryKinds = { outcome: 1, key: 2, epoch: 3 } as const

/** The record that an outcome's leaf commits to. */
export interface OutcomeRecord {
  readonly v: 1
  readonly outcome: "settled" | "failed" | "expired"
  readonly by?: "operator"
  /** The earlier leaf's outcome that this one corrects: the failed payment's authorization was used later. */
  readonly corrects?: "failed"
  readonly settlement: string
  readonly network?: string
  readonly transaction: string
  readonly moved?: string
  readonly fee: string
  readonly ledger?: number
  readonly reason?: string
  /** Milliseconds since 1970. */
  readonly at: number
  /** `sha256:HEX` of the compact JWS. */
  readonly receipt?: string
  /** `sha256:HEX` of the attestation's canonical JSON. */
  readonly attestation?: string
}

export type KeyUse = "receipt" | "log" | "attestation"

/** A public entry: a key was announced or retired. */
export interface KeyEntry {
  readonly event: "announced" | "retired"
  readonly kid: string
  /** b64u. */
  readonly publicKey: string
  readonly use: KeyUse
  /** Seconds since 1970. */
  readonly at: number
}

/** The first entry of every epoch after the first. */
export interface EpochEntry {
  readonly epoch: number
  readonly origin: string
  readonly previous: { readonly origin: string; readonly size: number; readonly root: string }
  readonly reason: string
  readonly at: number
}

/** RFC 6962 inclusion of a leaf in the tree of a checkpoint. */
export interface InclusionProof {
  readonly epoch: number
  readonly origin: string
  readonly index: number
  readonly size: number
  /** Hex, as are `hashes`, from the leaf upwards. */
  readonly leafHash: string
  readonly hashes: ReadonlyArray<string>
  /** The log's entries about the receipt's key, each with its path in the same tree. */
  readonly keys: ReadonlyArray<{
    readonly index: number
    /** Canonical JSON of a `KeyEntry`. */
    readonly entry: string
    readonly hashes: ReadonlyArray<string>
  }>
  /**
   * Proof that the payment's newest leaf is in its one place of the checkpoint's map; absent if the checkpoint lacks a
   * map.
   */
  readonly map?: {
    /** b64u of 32 bytes that blind the map's keys. */
    readonly secret: string
    /** Hex, from the leaf upwards. */
    readonly hashes: ReadonlyArray<string>
  }
  /** The signed note. */
  readonly checkpoint: string
}

/** The answer of `GET /receipts/:hash`. */
export interface ReceiptAnswer {
  readonly network: string
  readonly transaction: string
  readonly receipt: string | null
  readonly attestation: Attestation | null
  readonly outcomes: ReadonlyArray<{
    /** Canonical JSON of an `OutcomeRecord`. */
    readonly record: string
    /** b64u of 32 bytes. */
    readonly salt: string
    /** Only with `?proof=1`; null until a checkpoint covers it. */
    readonly proof?: InclusionProof | null
  }>
}

/** One entry of `GET /log/epochs`. */
export interface LogEpoch {
  readonly epoch: number
  readonly origin: string
  readonly size: number
  /** b64. */
  readonly root: string
  readonly begunAt: number
  readonly reason: string | null
  /** A signed note that names the previous epoch. */
  readonly statement: string | null
  /** Verifier keys, `NAME+hex+b64`. */
  readonly keys: ReadonlyArray<string>
  /** Indexes of the entries about keys. */
  readonly keyEntries: ReadonlyArray<number>
}
