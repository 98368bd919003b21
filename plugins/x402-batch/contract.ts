// The interface of `batch-settlement` for other plugins: the types of its channels, calls and events, and its contract
// as bytes, for deployment to a ledger.
import { Result } from "effect"
import { Base64 } from "effect/encoding"
import { contract } from "../../kernel/contract/Contract.ts"
import { Delegates } from "./Delegates.ts"
import { KnownChannels } from "./KnownChannels.ts"
import { batchWasmBase64, batchWasmHash } from "./contract/batchWasm.ts"

export type { BatchContract, ChannelConfig, ChannelState, ClaimedTotal, ClaimEntry } from "./batchCodec.ts"
export { type KnownChannel, KnownChannels } from "./KnownChannels.ts"
export type { BatchEvent, ReceiverState, RefundCall } from "./batchCalls.ts"
export {
  authorizerKeyOf,
  bytesOfHex,
  channelIdOf,
  claimDigest,
  claimedTotals,
  decodeAmount,
  networkIdOf,
  refundDigest,
  voucherDigest
} from "./batchCodec.ts"
export { channelKey, channelStateOf, claimArgs, depositArgs, depositTransferArgs, withdrawArgs } from "./batchCalls.ts"
export { proveState } from "./proveState.ts"
export { Delegates, type DelegateSign, type HasCharged, signatureSeconds } from "./Delegates.ts"
/** The channels in use, for plugins that list them, and the signer for sellers without a key. */
export const batchChannelsContract = contract("x402-batch", KnownChannels, Delegates)

/** sha256 of the module, hex: the name of its code on every ledger. */
export { batchWasmHash }

/** The module. It has not been audited. */
export const batchWasm = (): Uint8Array => Result.getOrThrow(Base64.decode(batchWasmBase64))
