// What `batch-settlement` gives to other plugins: the contract's name for its code, and the types of channels and calls.
export type { BatchContract, ChannelConfig, ChannelState, ClaimedTotal, ClaimEntry } from "./batchCodec.ts"
export type { BatchEvent, ReceiverState, RefundCall } from "./batchCalls.ts"
