// The signer signs the transactions that this program builds, and refuses everything else, from any caller. A
// settlement is one contract call on one of our channels. It must not contain a source, a memo or any of our own
// accounts, is bounded by a ledger and the fee ceilings, and accepts only one further signer: a hash with its preimage.
// A fee bump is the sponsor's, around exactly such a settlement. The sponsor's own transactions only create, fund or
// merge our channels, or move a former sponsor's balance to the operator's account. A refusal here is a bug or an
// attack, so it is a defect; it names the violated rule and never the content. Sponsor and channels may change while
// the process runs (a rotation), so addresses must be read on each use; a remote key that does not sign leaves
// everything open. A call that a scheme registered may hold the sponsor at one argument; its authorization of that call
// is signed here too (`ownAuthorization.ts`).
import { StrKey } from "@stellar/stellar-sdk/base"
import { Context, Effect, Layer, Schema, type Scope } from "effect"
import { Hex } from "effect/encoding"
import { contract } from "../contract/Contract.ts"
import type { LedgerUnavailable } from "../ledger/LedgerRpc.ts"
import { type FeeCeilings, Network } from "../config/Network.ts"
import { actsAsSource, signatureValue, signedPayload } from "../stellar/AuthEntry.ts"
import { authOf, decodeOperation, encodeOperation, invokedBy } from "../stellar/ContractCall.ts"
import {
  anchoredHash,
  conditionsOf,
  encodeEnvelope,
  hashSignerOf,
  hasMemo,
  sameBytes,
  ledgerMaxOf,
  networkIdOf,
  type Operation,
  readSponsorOperation,
  resourceFeeOf,
  sequenceBumpOf,
  sourceOf,
  type Transaction,
  transactionHash,
  withSignatures
} from "../stellar/Envelope.ts"
import { type Preimage, signedFeeBump, writeFeeBump, writeTransaction } from "../stellar/bumpedTransaction.ts"
import { Crypto } from "../platform/Crypto.ts"
import {
  checkAuthorization,
  ownEntry,
  settlementNamingIssue,
  type SponsoredCall,
  withEntry
} from "./ownAuthorization.ts"
import { voidValue } from "../stellar/Value.ts"
import { type AccountNames, type Accounts, Vault } from "./Vault.ts"
import { withSpanIfSampled } from "../effect/withSpanIfSampled.ts"

/** Maximum bid of the sponsor's own transactions per operation, stroops. */
export const sponsorStroopsPerOperationMax = 100_000n

/** The signer was asked for a transaction that this program does not build. */
export class SignerRefused extends Schema.TaggedError<SignerRefused>()("SignerRefused", { message: Schema.String }) {}

interface SignedEnvelope {
  /** Base64 XDR of the fee bump, ready to send. */
  readonly envelope: string
  /** Hex. */
  readonly innerHash: string
  readonly outerHash: string
  /** The sponsor of the fee bump. */
  readonly sponsor: string
}

/** A settlement, or the no-op that cancels one. */
interface SettlementToSign {
  readonly transaction: Transaction
  readonly channel: string
  /** The scheme's ceilings bound the fee. */
  readonly scheme: string
  readonly inclusionStroops: bigint
  /** Preimage of the transaction's hash signer; absent without one. */
  readonly preimage?: Uint8Array
}

interface AuthorizationToSign {
  /** XDR of one contract call without a source, with the authorizations of all other parties. */
  readonly operationXdr: Uint8Array
  readonly expiresLedger: number
}

/** The signing accounts, the network, and our own addresses. */
interface House {
  readonly vault: Accounts
  readonly crypto: Crypto["Service"]
  readonly network: Network["Service"]
  readonly networkId: Uint8Array
  readonly sponsors: ReadonlyArray<string>
  readonly ours: ReadonlySet<string>
  readonly ourKeys: ReadonlyArray<Uint8Array>
}

const houseOf = (vault: Accounts, crypto: Crypto["Service"], network: Network["Service"]): House => {
  const sponsors = [vault.sponsor, ...vault.formerSponsors]
  const ours = new Set([...sponsors, ...vault.channels, ...vault.formerChannels])
  return {
    vault,
    crypto,
    network,
    networkId: networkIdOf(crypto, network.passphrase),
    sponsors,
    ours,
    ourKeys: [...ours].map((address) => StrKey.decodeEd25519PublicKey(address))
  }
}

/** Our accounts as of the vault's last reading. */
const makeHouse = Effect.gen(function* () {
  const vault = yield* Vault
  const crypto = yield* Crypto
  const network = yield* Network
  let house = houseOf(vault.accounts(), crypto, network)
  return () => {
    const accounts = vault.accounts()
    return house.vault === accounts ? house : (house = houseOf(accounts, crypto, network))
  }
})

const refuse = (message: string) => Effect.fail(new SignerRefused({ message }))

/** A leasable channel, or a retired one. */
const isChannelOfOurs = (vault: Accounts, address: string): boolean =>
  vault.channels.includes(address) || vault.formerChannels.includes(address)

const signAs = ({ vault }: House, address: string, hash: Uint8Array) =>
  Effect.flatMap(vault.sign(address, hash), (signed) =>
    signed === undefined ? refuse("asked to sign for an account that is not ours") : Effect.succeed(signed)
  )

const wrap = Effect.fnUntraced(function* (
  house: House,
  { channel, transaction }: SettlementToSign,
  feeStroops: bigint,
  preimage?: Preimage
) {
  const { crypto, networkId, vault } = house
  const inner = writeTransaction(crypto, networkId, transaction)
  const signature = yield* signAs(house, channel, inner.hash)
  const signed = { transaction: inner, signature, ...(preimage && { preimage }) }
  const bump = writeFeeBump(crypto, networkId, signed, vault.sponsor, feeStroops)
  return {
    envelope: signedFeeBump(bump, yield* signAs(house, vault.sponsor, bump.hash)),
    innerHash: Hex.encode(inner.hash),
    outerHash: Hex.encode(bump.hash),
    sponsor: vault.sponsor
  }
})

const signSettlement = Effect.fnUntraced(function* (house: House, request: SettlementToSign) {
  const { crypto, network, networkId, ourKeys, sponsors, vault } = house
  const { channel, inclusionStroops, scheme, transaction } = request
  if (!isChannelOfOurs(vault, channel)) return yield* refuse("a settlement on an account that is not a channel")
  const preimage = request.preimage && { preimage: request.preimage, hash: crypto.sha256(request.preimage) }
  const error =
    settlementError(transaction, channel, preimage?.hash) ??
    settlementNamingIssue(transaction.operations[0]!, sponsors, ourKeys, crypto, networkId)
  if (error !== undefined) return yield* refuse(error)
  const resourceStroops = resourceFeeOf(transaction) ?? 0n
  const dear = feeError(transaction, resourceStroops, inclusionStroops, network.feeCeilings(scheme))
  if (dear !== undefined) return yield* refuse(dear)
  return yield* wrap(house, request, resourceStroops + inclusionStroops, preimage)
}, withSpanIfSampled("Signer.signSettlement"))

const signAuthorization = Effect.fnUntraced(function* (
  house: House,
  allowed: ReadonlySet<SponsoredCall>,
  request: AuthorizationToSign
) {
  const { crypto, networkId, ourKeys, sponsors } = house
  const { expiresLedger } = request
  const operation = decodeOperation(request.operationXdr)
  const verified = checkAuthorization(operation, [...allowed], sponsors, ourKeys)
  if ("problem" in verified) return yield* refuse(verified.problem)
  const nonce = new DataView(crypto.randomBytes(8).slice().buffer).getBigInt64(0)
  const own = { sponsor: verified.sponsor, nonce, expiresLedger }
  const hash = signedPayload(crypto, networkId, ownEntry(operation, { ...own, signature: voidValue }))!
  const { publicKey, signature } = yield* signAs(house, verified.sponsor, hash)
  const entry = ownEntry(operation, { ...own, signature: signatureValue({ key: publicKey, signature }) })
  return encodeOperation(withEntry(operation, entry))
}, withSpanIfSampled("Signer.signAuthorization"))

const signCancel = Effect.fnUntraced(function* (house: House, request: SettlementToSign) {
  const { channel, inclusionStroops, scheme, transaction } = request
  if (!isChannelOfOurs(house.vault, channel) || sourceOf(transaction) !== channel)
    return yield* refuse("a no-op on an account that is not a channel")
  const [operation] = transaction.operations
  const harmless =
    transaction.operations.length === 1 &&
    operation?.sourceAccount == null &&
    operation !== undefined &&
    sequenceBumpOf(operation) === 0n &&
    conditionError(transaction) === undefined
  if (!harmless) return yield* refuse("a no-op that does something")
  const dear = feeError(transaction, 0n, inclusionStroops, house.network.feeCeilings(scheme))
  return dear === undefined ? yield* wrap(house, request, inclusionStroops) : yield* refuse(dear)
}, withSpanIfSampled("Signer.signCancel"))

const signSponsor = Effect.fnUntraced(function* (house: House, transaction: Transaction) {
  const { crypto, networkId, vault } = house
  if (sourceOf(transaction) !== vault.sponsor) return yield* refuse("a sponsor transaction of another account")
  if (BigInt(transaction.fee) > sponsorStroopsPerOperationMax * BigInt(transaction.operations.length))
    return yield* refuse("a sponsor transaction whose fee is above its ceiling")
  const signing: Array<string> = []
  for (const operation of anchoredHash(transaction) === undefined ? transaction.operations : []) {
    const error = hasMemo(transaction) ? "a memo without an anchor" : sponsorError(operation, vault, signing)
    if (error !== undefined) return yield* refuse(error)
  }
  const hash = transactionHash(crypto, networkId, transaction)
  const signatures = yield* Effect.forEach([vault.sponsor, ...new Set(signing)], (address) =>
    signAs(house, address, hash)
  )
  return { envelope: encodeEnvelope(withSignatures(transaction, signatures)), hash: Hex.encode(hash) }
}, withSpanIfSampled("Signer.signSponsor"))

export class Signer extends Context.Service<
  Signer,
  {
    readonly sponsor: string
    /** The reason why a remote key cannot sign now; it probes that machine at most once a second. */
    readonly problem: Effect.Effect<string | undefined>
    /** Probes such a machine, unless it signed recently; `problem` has the result. */
    readonly assure: Effect.Effect<void>
    readonly names: () => AccountNames
    /** Reads the sources of the keys again. Sponsor, channels and everything derived from them change atomically. */
    readonly reread: Vault["Service"]["reread"]
    /**
     * Accounts that may be named as the facilitator: the sponsor, and earlier sponsors with secrets that are still
     * present.
     */
    readonly sponsors: ReadonlyArray<string>
    /** All possible channels, by number; the first of them are in use. */
    readonly channels: ReadonlyArray<string>
    /** Whether the operator names each channel, instead of a number of derived ones. */
    readonly areChannelsGiven: boolean
    /** Retired channels, no longer leased: we may still cancel on them and merge them back. */
    readonly formerChannels: ReadonlyArray<string>
    /** True for sponsor and channels, former ones too: addresses that must appear nowhere in a payment. */
    readonly isOurs: (address: string) => boolean
    /** Allows the sponsor in one call, for as long as the Scope lives. Without it, the sponsor authorizes nothing. */
    readonly allowAuthorization: (call: SponsoredCall) => Effect.Effect<void, never, Scope.Scope>
    /**
     * Authorizes an operation's call as the sponsor, valid through a given ledger. Returns the XDR of the operation
     * with that authorization after the existing ones. The nonce is new each time.
     */
    readonly signAuthorization: (
      request: AuthorizationToSign
    ) => Effect.Effect<Uint8Array, SignerRefused | LedgerUnavailable>
    /** Signs a settlement as its channel and wraps it in the sponsor's fee bump. */
    readonly signSettlement: (
      request: SettlementToSign
    ) => Effect.Effect<SignedEnvelope, SignerRefused | LedgerUnavailable>
    /** Signs the no-op that cancels a settlement. */
    readonly signCancel: (request: SettlementToSign) => Effect.Effect<SignedEnvelope, SignerRefused | LedgerUnavailable>
    /** Signs one of the sponsor's own transactions. */
    readonly signSponsor: (
      transaction: Transaction
    ) => Effect.Effect<{ readonly envelope: string; readonly hash: string }, SignerRefused | LedgerUnavailable>
  }
>()("tollkeeper/signer/Signer") {
  static readonly layer = Layer.effect(
    Signer,
    Effect.gen(function* () {
      const house = yield* makeHouse
      const { reread } = yield* Vault
      const allowed = new Set<SponsoredCall>()
      return Signer.of({
        get sponsor() {
          return house().vault.sponsor
        },
        get sponsors() {
          return house().sponsors
        },
        get channels() {
          return house().vault.channels
        },
        get areChannelsGiven() {
          return house().vault.areChannelsGiven
        },
        get formerChannels() {
          return house().vault.formerChannels
        },
        isOurs: (address) => house().ours.has(address),
        problem: Effect.suspend(() => house().vault.problem),
        assure: Effect.suspend(() => house().vault.assure),
        names: () => {
          const { areChannelsGiven, channels, formerChannels, formerSponsors, sponsor } = house().vault
          return { areChannelsGiven, channels, formerChannels, formerSponsors, sponsor }
        },
        reread,
        allowAuthorization: (call) =>
          Effect.asVoid(
            Effect.acquireRelease(
              Effect.sync(() => allowed.add(call)),
              () => Effect.sync(() => allowed.delete(call))
            )
          ),
        signAuthorization: (request) => signAuthorization(house(), allowed, request),
        signSettlement: (request) => signSettlement(house(), request),
        signCancel: (request) => signCancel(house(), request),
        signSponsor: (transaction) => signSponsor(house(), transaction)
      })
    })
  )
}

/** The error of a settlement's transaction, if any. */
const settlementError = (transaction: Transaction, channel: string, signer?: Uint8Array): string | undefined => {
  if (sourceOf(transaction) !== channel) return "a settlement whose source is not its channel"
  const condition = conditionError(transaction, signer)
  if (condition !== undefined) return condition
  const [operation] = transaction.operations
  if (transaction.operations.length !== 1 || operation === undefined)
    return "a settlement with other than one operation"
  if (operation.sourceAccount != null) return "a settlement whose operation has a source"
  if (invokedBy(operation) === undefined) return "a settlement that is not a contract call"
  if (resourceFeeOf(transaction) === undefined) return "a settlement without resource data"
  // The source is one of our channels: such an entry would act in its name.
  return authOf(operation).some(actsAsSource) ? "a settlement that acts as its own source" : undefined
}

/** The error in the cost of a transaction on a channel, bumped or not. */
const feeError = (
  transaction: Transaction,
  resourceStroops: bigint,
  inclusionStroops: bigint,
  ceilings: FeeCeilings
): string | undefined => {
  if (resourceStroops < 0n || resourceStroops > ceilings.resourceStroopsMax) return "a resource fee above its ceiling"
  if (inclusionStroops > ceilings.inclusionStroopsMax) return "an inclusion bid above its ceiling"
  const stroopsMax = ceilings.totalStroopsMax
  return resourceStroops + inclusionStroops > stroopsMax || BigInt(transaction.fee) > stroopsMax
    ? "a fee above the ceiling of resource fee and bid together"
    : undefined
}

/**
 * Conditions of every transaction on a channel: an end in ledgers, no text, no other condition except the hash signer.
 */
const conditionError = (transaction: Transaction, signer?: Uint8Array): string | undefined => {
  if (hasMemo(transaction)) return "a channel's transaction with a memo"
  const conditions = conditionsOf(transaction)
  if (conditions === undefined || !ledgerMaxOf(transaction)) return "a channel's transaction without a ledger bound"
  const { extraSigners, minSeqAge, minSeqLedgerGap, minSeqNum } = conditions
  const hashSigner = hashSignerOf(transaction)
  const isSigned =
    signer === undefined ? extraSigners.length === 0 : hashSigner !== undefined && sameBytes(hashSigner, signer)
  const plain = isSigned && minSeqNum == null && BigInt(minSeqAge) === 0n && minSeqLedgerGap === 0
  return plain ? undefined : "a channel's transaction with further conditions"
}

/** The error of one of the sponsor's own operations, if any; accounts that have to sign it are collected. */
const sponsorError = (operation: Operation, vault: Accounts, signing: Array<string>): string | undefined => {
  const read = readSponsorOperation(operation)
  if (read === undefined) return "an operation that the sponsor never signs"
  const isChannel = (address: string) => vault.channels.includes(address)
  const isOwn = read.source === undefined
  const chore = read.operation
  switch (chore._tag) {
    case "Create":
      return isOwn && isChannel(chore.account) ? undefined : "a new account that is not one of our channels"
    case "Fund":
      return isOwn && isChannel(chore.account) ? undefined : "a payment that does not fund one of our channels"
    case "Merge":
      signing.push(chore.account)
      return isChannelOfOurs(vault, chore.account) && chore.into === vault.sponsor
        ? undefined
        : "a merge other than of a channel into the sponsor"
    case "Anchor":
      return "an anchor with another operation"
    case "Drain":
      signing.push(chore.account)
      return vault.formerSponsors.includes(chore.account) ? undefined : "a payment of an account that is in use"
  }
}

export const signerContract = contract("signer", Signer)
