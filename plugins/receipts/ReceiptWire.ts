// Requests and responses of the receipts routes as Schemas; `contract.ts` has the same as types.
import { Schema } from "effect"
import { anything, text, whole } from "../../kernel/http/wireSchema.ts"

export const ChallengeAsked = Schema.Struct({ account: text("Account (G… or C…) of payer or payTo.") })

export const ChallengeMade = Schema.Struct({
  challenge: text("Sentence to sign as a message of SEP-53."),
  authorization: Schema.optionalKey(
    text("What a contract account signs instead: base64 of a SorobanAuthorizationEntry that moves nothing.")
  ),
  expiresAt: text("ISO 8601.")
})

export const ChallengeAnswered = Schema.Struct({
  account: text("The account that signed."),
  challenge: text("The challenge as it was given."),
  signature: text("Base64 of the signature, or of the signed authorization.")
})

const Proof = Schema.Struct({
  epoch: whole("Epoch of the log."),
  origin: text("Name of its log."),
  index: whole("Of the leaf."),
  size: whole("Of the tree."),
  leafHash: text("Hex."),
  hashes: Schema.Array(Schema.String),
  keys: Schema.Array(
    Schema.Struct({
      index: whole("Of the leaf."),
      entry: text("Canonical JSON of what the log says of the receipt's key."),
      hashes: Schema.Array(Schema.String)
    })
  ),
  map: Schema.optionalKey(
    Schema.Struct({
      secret: text("Base64url of what blinds the map's keys."),
      hashes: Schema.Array(Schema.String)
    })
  ),
  checkpoint: text("Signed note.")
}).annotate({ identifier: "InclusionProof" })

export const ReceiptShown = Schema.Struct({
  network: text("CAIP-2."),
  transaction: text("Hash of the transaction."),
  receipt: Schema.NullOr(text("Compact JWS; null where nothing was settled.")),
  attestation: anything("The draft's attestation, or null."),
  outcomes: Schema.Array(
    Schema.Struct({
      record: text("Canonical JSON that the leaf commits to."),
      salt: text("Base64url."),
      proof: Schema.optionalKey(Schema.NullOr(Proof))
    })
  )
}).annotate({ identifier: "Receipt" })

export const EpochsShown = Schema.Struct({
  epochs: Schema.Array(
    Schema.Struct({
      epoch: whole("From 1."),
      origin: text("Name of its log."),
      size: whole("Leaves that are kept."),
      root: text("Base64."),
      begunAt: whole("Seconds since 1970."),
      reason: Schema.NullOr(text("Why the epoch before ended.")),
      statement: Schema.NullOr(text("Signed note that names the epoch before.")),
      keys: Schema.Array(Schema.String),
      keyEntries: Schema.Array(Schema.Int)
    })
  )
})

export const ReceiptError = Schema.Struct({
  error: text("Word of the error."),
  message: Schema.optionalKey(text("In a sentence."))
}).annotate({ identifier: "ReceiptError" })
