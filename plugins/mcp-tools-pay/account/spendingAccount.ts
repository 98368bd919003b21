// The spending account of an agent, for its owner's commands: a contract account that pays by the agent's key within a
// policy on the ledger (`account.as`). The owner's key signs ordinary transactions of the owner's account here; this
// code never has the agent's key.
import {
  Account,
  Address,
  Keypair,
  nativeToScVal,
  Operation,
  SorobanDataBuilder,
  StrKey,
  TransactionBuilder,
  xdr
} from "@stellar/stellar-sdk/base"
import { Effect, Layer, Option, Redacted, Result, Schedule, Schema } from "effect"
import { max as larger } from "effect/BigInt"
import { Base64, Hex } from "effect/encoding"
import { Limits } from "../../../kernel/config/Limits.ts"
import { Network } from "../../../kernel/config/Network.ts"
import { Settings, SettingsRefused } from "../../../kernel/config/Settings.ts"
import { LedgerRpc } from "../../../kernel/ledger/LedgerRpc.ts"
import * as MakeLedgerRpc from "../../../kernel/ledger/makeLedgerRpc.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { addressOf, bytesOf, i128Of, u64Of, type Value, vecOf } from "../../../kernel/stellar/Value.ts"
import { accountWasmBase64, accountWasmHash } from "./accountWasm.ts"

interface SpendingPolicy {
  /** The agent's key, G… */
  readonly agent: string
  readonly asset: string
  /** Atomic units in a UTC day of the ledger. */
  readonly cap: bigint
  /** Unix seconds. */
  readonly expiresAt: bigint
  /** Empty: any recipient. */
  readonly recipients: ReadonlyArray<string>
}

/** An account as the ledger shows it. */
export interface SpendingState {
  readonly account: string
  readonly owner: string
  /** Undefined after a revocation. */
  readonly policy: SpendingPolicy | undefined
  /** The policy's asset; undefined without a policy. */
  readonly balance: bigint | undefined
  readonly spentToday: bigint
  /** Its life on the ledger is over: the next call of the contract, also a payment's check, restores it for a fee. */
  readonly isArchived: boolean
}

class AccountRefused extends Schema.TaggedError<AccountRefused>()("AccountRefused", {
  message: Schema.String,
  /** The host's error, if a simulation refuses. */
  code: Schema.optionalKey(Schema.String)
}) {}

const refused = (message: string) => new AccountRefused({ message })
/** Maximum fee of one transaction. The node names it, and the owner pays it. */
const feeStroopsMax = 200_000_000n
const secondsPerDay = 86_400
/** The longest life that a network grants to an entry, and the ledgers of a day at five seconds each. */
const lifeLedgersMax = 3_110_399
const ledgersPerDay = 17_280

const address = (text: string): xdr.ScVal => new Address(text).toScVal()
const i128 = (amount: bigint): xdr.ScVal => nativeToScVal(amount, { type: "i128" })

const policyArgs = ({ agent, asset, cap, expiresAt, recipients }: SpendingPolicy): Array<xdr.ScVal> => [
  xdr.ScVal.scvBytes(StrKey.decodeEd25519PublicKey(agent)),
  address(asset),
  i128(cap),
  nativeToScVal(expiresAt, { type: "u64" }),
  xdr.ScVal.scvVec(recipients.map(address))
]

const callTo = (contract: string, fn: string, args: ReadonlyArray<xdr.ScVal>) => (auth: Auth) =>
  Operation.invokeContractFunction({ contract, function: fn, args: [...args], auth })

type Auth = Array<xdr.SorobanAuthorizationEntry>
type Draft = (auth: Auth) => xdr.Operation

/** The account that owns spending accounts here: its seed is in the environment. */
const ownerAt = Effect.fnUntraced(function* (variable: string) {
  const path = `the environment variable ${variable}`
  const secret = Option.getOrUndefined((yield* Settings).secret(variable))
  if (secret === undefined) return yield* new SettingsRefused({ path, message: "it is not set" })
  return yield* Effect.try({
    try: () => Keypair.fromSecret(Redacted.value(secret).trim()),
    catch: () => new SettingsRefused({ path, message: "a secret seed (S…) is required" })
  })
})

const simulate = Effect.fnUntraced(function* (envelope: string) {
  const simulated = yield* (yield* LedgerRpc).simulate(envelope)
  if (simulated._tag === "Simulated") return simulated
  return yield* simulated._tag === "Refused"
    ? new AccountRefused({ message: `the ledger refuses: ${simulated.code} ${simulated.detail}`, code: simulated.code })
    : refused("archived entries of the account need a restore first")
})

/** Submits one operation of the owner's account and waits until the ledger has it; the call's result. */
const execute = Effect.fnUntraced(function* (owner: Keypair, draft: Draft, data?: xdr.SorobanTransactionData) {
  const rpc = yield* LedgerRpc
  const { passphrase } = yield* Network
  const { accounts } = yield* rpc.accounts([owner.publicKey()])
  const account = accounts.get(owner.publicKey())
  if (account === undefined) return yield* refused(`the owner's account ${owner.publicKey()} is not on the ledger`)
  const { closedAtSeconds } = yield* rpc.latestLedger
  const { p90 } = yield* rpc.feeStats
  const built = (auth: Auth, resources: xdr.SorobanTransactionData | undefined) => {
    const builder = new TransactionBuilder(new Account(owner.publicKey(), String(account.sequence)), {
      fee: String(larger(100n, p90)),
      networkPassphrase: passphrase,
      timebounds: { minTime: 0, maxTime: closedAtSeconds + 300 }
    }).addOperation(draft(auth))
    return (resources === undefined ? builder : builder.setSorobanData(resources)).build()
  }
  const simulated = yield* simulate(built([], data).toXDR())
  const fee = simulated.resourceFeeStroops + larger(100n, p90)
  if (fee > feeStroopsMax) return yield* refused(`the ledger's node asks for a fee of ${fee} stroops, above 20 XLM`)
  const transaction = built(
    simulated.authXdr.map((entry) => xdr.SorobanAuthorizationEntry.fromXdr(entry)),
    xdr.SorobanTransactionData.fromXdr(simulated.sorobanDataXdr)
  )
  transaction.sign(owner)
  const hash = Hex.encode(transaction.hash())
  const sent = yield* rpc.send(transaction.toXDR(), hash)
  if (sent._tag === "Error") return yield* refused(`the ledger refuses the transaction: ${sent.code}`)
  const answer = yield* rpc.transaction(hash).pipe(
    Effect.repeat({ schedule: Schedule.spaced("500 millis"), until: ({ _tag }) => _tag === "Included" }),
    Effect.timeoutOrElse({
      duration: "60 seconds",
      orElse: () =>
        refused(`transaction ${hash} is not on the ledger yet: run agent account show before you repeat this`)
    })
  )
  if (answer._tag === "Included" && answer.executed.succeeded) return simulated.resultXdr
  return yield* refused(`transaction ${hash} failed on the ledger`)
})

const instanceKey = (account: string): xdr.LedgerKey =>
  xdr.LedgerKey.contractData(
    new xdr.LedgerKeyContractData({
      contract: new Address(account).toScAddress(),
      key: xdr.ScVal.scvLedgerKeyContractInstance(),
      durability: xdr.ContractDataDurability.persistent
    })
  )

const wasmHash = Result.getOrThrow(Hex.decode(accountWasmHash))

/** Extends the life of the account's entries to the policy's expiry, payments pay no rent. */
const extend = Effect.fnUntraced(function* (owner: Keypair, account: string, expiresAt: bigint) {
  const { closedAtSeconds } = yield* (yield* LedgerRpc).latestLedger
  const days = Math.ceil((Number(expiresAt) - closedAtSeconds) / secondsPerDay) + 1
  const code = xdr.LedgerKey.contractCode(new xdr.LedgerKeyContractCode({ hash: wasmHash }))
  yield* execute(
    owner,
    () => Operation.extendFootprintTtl({ extendTo: Math.max(1, Math.min(lifeLedgersMax, days * ledgersPerDay)) }),
    new SorobanDataBuilder().setReadOnly([instanceKey(account), code]).build()
  )
})

const policyOf = (value: Value | undefined): SpendingPolicy | undefined => {
  const [agent, asset, cap, expiresAt, recipients] = vecOf(value) ?? []
  if (agent === undefined) return undefined
  return {
    agent: StrKey.encodeEd25519PublicKey(bytesOf(agent) as Uint8Array<ArrayBuffer>),
    asset: addressOf(asset)!,
    cap: i128Of(cap)!,
    expiresAt: u64Of(expiresAt)!,
    recipients: (vecOf(recipients) ?? []).map((one) => addressOf(one)!)
  }
}

const show = Effect.fnUntraced(function* (account: string) {
  const rpc = yield* LedgerRpc
  if (Option.getOrUndefined(yield* rpc.codeHash(account)) !== accountWasmHash)
    return yield* refused(`${account} is not a spending account of this version`)
  const { passphrase } = yield* Network
  const anyone = new Account(StrKey.encodeEd25519PublicKey(new Uint8Array(32)), "0")
  const read = new TransactionBuilder(anyone, { fee: "100", networkPassphrase: passphrase })
    .addOperation(callTo(account, "state", [])([]))
    .setTimeout(0)
    .build()
  const { restoredEntries = 0, resultXdr } = yield* simulate(read.toXDR())
  const [owner, held, spent] = vecOf(xdr.ScVal.schema.decode(resultXdr!)) ?? []
  const policy = policyOf(held)
  const { closedAtSeconds } = yield* rpc.latestLedger
  const [day, total] = vecOf(spent) ?? []
  const isToday = u64Of(day) === BigInt(Math.floor(closedAtSeconds / secondsPerDay))
  const holdings = policy === undefined ? Option.none() : yield* rpc.holdings(policy.asset, [account])
  const balance =
    policy === undefined
      ? undefined
      : Option.getOrUndefined(Option.map(holdings, (found) => found.get(account)?.spendable ?? 0n))
  return {
    account,
    owner: addressOf(owner)!,
    policy,
    balance,
    spentToday: isToday ? i128Of(total)! : 0n,
    isArchived: restoredEntries > 0
  } satisfies SpendingState
})

const transfer = (asset: string, from: string, to: string, amount: bigint): Draft =>
  callTo(asset, "transfer", [address(from), address(to), i128(amount)])

/** A policy that ends some days after the newest ledger. */
type PolicyOrder = Omit<SpendingPolicy, "expiresAt"> & { readonly days: number }

const placed = ({ days, ...policy }: PolicyOrder) =>
  Effect.map(
    Effect.flatMap(LedgerRpc, ({ latestLedger }) => latestLedger),
    ({ closedAtSeconds }) => ({ ...policy, expiresAt: BigInt(closedAtSeconds + days * secondsPerDay) })
  )

export type OwnerStep =
  | { readonly step: "create"; readonly policy: PolicyOrder; readonly amount: bigint }
  | { readonly step: "allow"; readonly account: string; readonly policy: PolicyOrder }
  | { readonly step: "revoke"; readonly account: string }
  | { readonly step: "fund" | "withdraw"; readonly account: string; readonly amount: bigint; readonly asset?: string }

const create = Effect.fnUntraced(function* (owner: Keypair, policy: SpendingPolicy, amount: bigint) {
  if (policy.agent === owner.publicKey())
    return yield* refused("the agent's key must not be the owner's: a stolen one could then do everything")
  const salt = (yield* Crypto).randomBytes(32)
  const creation: Draft = (auth) =>
    Operation.createCustomContract({
      address: new Address(owner.publicKey()),
      wasmHash,
      salt,
      constructorArgs: [address(owner.publicKey()), ...policyArgs(policy)],
      auth
    })
  // The ledger has the code already if anyone has created such an account before.
  const created = yield* execute(owner, creation).pipe(
    Effect.catchIf(
      (error) => error._tag === "AccountRefused" && error.code !== undefined,
      () =>
        Effect.andThen(
          execute(owner, () =>
            Operation.uploadContractWasm({ wasm: Result.getOrThrow(Base64.decode(accountWasmBase64)) })
          ),
          execute(owner, creation)
        )
    )
  )
  const account = addressOf(xdr.ScVal.schema.decode(created!))!
  return yield* Effect.gen(function* () {
    yield* extend(owner, account, policy.expiresAt)
    if (amount > 0n) yield* execute(owner, transfer(policy.asset, owner.publicKey(), account, amount))
    return account
  }).pipe(
    Effect.mapError(({ message }) =>
      refused(
        `${account} is created, but not funded: ${message}; continue with tollkeeper agent account fund ${account}`
      )
    )
  )
})

const take = Effect.fnUntraced(function* (step: OwnerStep, ownerEnv: string) {
  const owner = yield* ownerAt(ownerEnv)
  if (step.step === "create") return yield* create(owner, yield* placed(step.policy), step.amount)
  const { account } = step
  const held = yield* show(account)
  if (held.owner !== owner.publicKey())
    return yield* refused(`the owner of ${account} is ${held.owner}, not the key in ${ownerEnv}`)
  if (step.step === "revoke") yield* execute(owner, callTo(account, "revoke", []))
  else if (step.step === "allow") {
    const policy = yield* placed(step.policy)
    yield* execute(owner, callTo(account, "allow", policyArgs(policy)))
    yield* extend(owner, account, policy.expiresAt)
  } else {
    const asset = step.asset ?? held.policy?.asset
    if (asset === undefined) return yield* refused(`${account} has no policy: name the asset with --asset`)
    const [from, to] = [owner.publicKey(), account]
    yield* execute(
      owner,
      step.step === "fund"
        ? transfer(asset, from, to, step.amount)
        : callTo(account, "withdraw", [address(asset), address(from), i128(step.amount)])
    )
    if (step.step === "fund" && held.policy !== undefined) {
      // A transfer to the account does not touch its contract, and an archived entry cannot be extended.
      if (held.isArchived) yield* execute(owner, callTo(account, "state", []))
      yield* extend(owner, account, held.policy.expiresAt)
    }
  }
  return account
})

const services = Layer.unwrap(
  Effect.gen(function* () {
    const { passphrase, rpcHeaders, rpcUrls } = yield* Network
    const { rpcTimeout } = yield* Limits
    return MakeLedgerRpc.layer({ urls: rpcUrls, passphrase, timeout: rpcTimeout, headers: rpcHeaders })
  })
).pipe(Layer.provideMerge(Layer.mergeAll(Limits.layer, Network.layer)))

/** The account as the ledger shows it; needs no key. */
export const showAccount = (account: string) => show(account).pipe(Effect.provide(services))

/** Takes the step by the owner's key, and shows the account afterwards. `ownerEnv`: the variable with the seed. */
export const ownAccount = (step: OwnerStep, ownerEnv: string) =>
  Effect.flatMap(take(step, ownerEnv), show).pipe(Effect.provide(services))
