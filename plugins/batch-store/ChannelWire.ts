// Bodies of the channel store's routes, by Schemas that type the code, decode requests and describe the routes. Records
// are those of the official packages' storage, field by field; ids, signatures and salts are lower-case hex.
import { Schema } from "effect"
import { text, units, whole } from "../../kernel/http/wireSchema.ts"

const matching = (description: string, pattern: RegExp) => text(description).check(Schema.isPattern(pattern))

const address = (description: string) => matching(description, /^[GC][A-Z2-7]{55}$/u)
const key = (description: string) => matching(description, /^G[A-Z2-7]{55}$/u)

const network = text("In either spelling.").check(Schema.isMaxLength(64))
const channelId = matching("The channel's id: 32 bytes, hex.", /^[0-9a-f]{64}$/u)
const signature = matching("An ed25519 signature: 64 bytes, hex.", /^[0-9a-f]{128}$/u)
const payment = matching(
  "Random id of the request, chosen by the seller. A repeated id changes nothing.",
  /^[A-Za-z0-9_-]{16,128}$/u
)
const token = matching("The token's contract.", /^C[A-Z2-7]{55}$/u)

const ChannelConfig = Schema.Struct({
  payer: address("The payer."),
  payerAuthorizer: key("The key that signs vouchers."),
  receiver: address("The receiver."),
  receiverAuthorizer: key("The key that allows claims and refunds."),
  token,
  withdrawDelay: whole("Seconds from the start of a withdrawal to its end."),
  salt: matching("32 bytes, hex.", /^[0-9a-f]{64}$/u)
}).annotate({ identifier: "BatchChannelConfig" })

export const Voucher = Schema.Struct({
  channelId,
  maxClaimableAmount: units("The signed ceiling, cumulative."),
  signature
}).annotate({ identifier: "BatchVoucher" })

export const LedgerState = Schema.Struct({
  balance: units("Deposited, less refunds and withdrawals."),
  totalClaimed: units("Claimed so far."),
  withdrawRequestedAt: whole("Unix seconds; 0 when no withdrawal is started."),
  refundNonce: whole("Nonce of the next refund."),
  asOf: Schema.optionalKey(whole("A close time of the ledger, Unix seconds, at or before that of the reading.")),
  onchainSyncedAt: Schema.optionalKey(
    Schema.Finite.annotate({
      description: "With sync: when it was read, Unix ms; only `totalClaimed` is applied then."
    })
  )
}).annotate({ identifier: "BatchLedgerState" })
export type LedgerState = typeof LedgerState.Type

/** One channel, as the official packages store it. */
export const ChannelRecord = Schema.Struct({
  channelId,
  channelConfig: ChannelConfig,
  chargedCumulativeAmount: units("Total charged: the base of the next voucher."),
  signedMaxClaimable: units("Ceiling of the newest voucher."),
  signature,
  ...LedgerState.fields,
  onchainSyncedAt: Schema.NullOr(Schema.Number.annotate({ description: "When the ledger's state was read, Unix ms." })),
  lastRequestTimestamp: Schema.Number.annotate({ description: "The last request, Unix ms." }),
  pendingRequest: Schema.NullOr(
    Schema.Struct({
      pendingId: text("The request that reserved the channel."),
      signedMaxClaimable: units("Ceiling of its voucher."),
      expiresAt: Schema.Number.annotate({ description: "When another request may take the channel, Unix ms." })
    })
  ),
  pendingRefund: Schema.NullOr(
    Schema.Struct({
      pendingId: text("The request for which it was signed."),
      amount: units("Amount that may be paid out; it is not available for charges."),
      refundNonce: whole("The refund nonce for which it is valid."),
      expiresAt: whole("The last close time at which it is valid, Unix seconds.")
    })
  )
}).annotate({ identifier: "BatchChannel" })
export type ChannelRecord = typeof ChannelRecord.Type

export const Reserve = Schema.Struct({
  network,
  payment,
  channelConfig: ChannelConfig,
  voucher: Voucher,
  price: units("Maximum charge of the request; 0 for a refund."),
  state: Schema.optionalKey(LedgerState),
  ttlSeconds: whole("Seconds until another request may take the channel.")
})
export type Reserve = Omit<typeof Reserve.Type, "network" | "ttlSeconds">

export const Charge = Schema.Struct({
  network,
  payment,
  channelId,
  amount: units("Amount to charge."),
  state: Schema.optionalKey(LedgerState)
})
export type Charge = Omit<typeof Charge.Type, "network">

export const Release = Schema.Struct({ network, payment, channelId })
export const Sync = Schema.Struct({ network, channelId, state: LedgerState, payment: Schema.optionalKey(payment) })
export const Read = Schema.Struct({
  network,
  channelId: Schema.optionalKey(channelId),
  after: Schema.optionalKey(channelId)
})
export const Policy = Schema.Struct({
  network,
  token,
  claimEverySeconds: Schema.Int.annotate({ description: "Charges are claimed after this time." }).check(
    Schema.isBetween({ minimum: 1, maximum: 2_592_000 })
  ),
  claimAt: Schema.optionalKey(units("Claims as soon as this amount is unclaimed in one channel."))
})

export const Authorizing = Schema.Struct({ network })
export const AuthorizerAnswer = Schema.Struct({
  receiverAuthorizer: key("The store's key for the caller: it authorizes claims and refunds of channels that use it.")
}).annotate({ identifier: "BatchAuthorizer" })

export const Refund = Schema.Struct({
  network,
  payment,
  channelId,
  voucher: Voucher,
  amount: Schema.optionalKey(units("Amount to refund; default everything that is left."))
})

const claimFields = {
  voucher: Schema.Struct({ channel: ChannelConfig, maxClaimableAmount: units("The signed ceiling.") }),
  signature,
  totalClaimed: units("Total claimed.")
}

/** Fields that a seller adds to the buyer's refund before settling it. */
export const RefundAnswer = Schema.Struct({
  amount: units("Refunded amount."),
  refundNonce: units("The channel's nonce."),
  expiresAt: whole("The last close time at which the signatures are valid, Unix seconds."),
  claims: Schema.Array(Schema.Struct(claimFields)),
  refundAuthorizerSignature: signature,
  claimAuthorizerSignature: Schema.optionalKey(signature)
}).annotate({ identifier: "BatchRefund" })

export const Decided = Schema.Struct({
  status: Schema.Literals(["reserved", "charged", "missing", "busy", "stale", "exceeded", "released", "synced", "set"]),
  channel: Schema.optionalKey(ChannelRecord)
}).annotate({ identifier: "BatchDecision" })

/** Claims in one request to sign them: a body has 16 KB. */
export const signedClaimsMax = 16

export const Export = Schema.Struct({
  network,
  after: Schema.optionalKey(channelId),
  claims: Schema.optionalKey(
    Schema.Array(Schema.Struct(claimFields))
      .check(Schema.isMinLength(1), Schema.isMaxLength(signedClaimsMax))
      .annotate({
        description: "Claims of channels that the caller keeps: they are signed instead of the store's."
      })
  )
})
/** A page of signed claims for a watchtower. */
export const Exported = Schema.Struct({
  claims: Schema.Array(
    Schema.Struct({
      ...claimFields,
      expiresAt: whole("The last close time at which the claim is valid, Unix seconds."),
      claimAuthorizerSignature: signature
    })
  ),
  /** Cursor of the next page; absent on the last page. */
  after: Schema.optionalKey(channelId)
}).annotate({ identifier: "BatchExport" })

export const Channels = Schema.Struct({
  channels: Schema.Array(ChannelRecord),
  /** Cursor of the next page; absent on the last page. */
  after: Schema.optionalKey(channelId)
}).annotate({ identifier: "BatchChannels" })
