// Deploys the settlement contract to the embedded ledger by ordinary transactions of its own account: upload, then
// create. The account's key and the salt follow from a constant and from the code, so the contract's address is known
// before the ledger is, and an existing contract is not changed. The deployment is in the ledger's own journal.
import {
  Account,
  Address,
  hash,
  Keypair,
  Operation,
  SorobanDataBuilder,
  StrKey,
  TransactionBuilder,
  xdr
} from "@stellar/stellar-sdk/base"
import { Effect, Layer, Result, Schema } from "effect"
import { Hex } from "effect/encoding"
import { LocalLedger } from "../ledger-local/contract.ts"
import { settlementWasm, settlementWasmHash } from "../x402-upto/contract.ts"

/** The embedded ledger did not accept the contract. */
export class DeploymentFailed extends Schema.TaggedError<DeploymentFailed>()("DeploymentFailed", {
  message: Schema.String
}) {}

const utf8 = new TextEncoder()
const networkIdOf = (passphrase: string): Uint8Array => hash(utf8.encode(passphrase))

/** The deployer's account. Its key is public: it holds nothing anywhere but on this ledger. */
const deployer = (): Keypair => Keypair.fromRawEd25519Seed(hash(utf8.encode("tollkeeper local upto deployer")))

const wasmHash = (): Uint8Array => Result.getOrThrow(Hex.decode(settlementWasmHash))

const contractIdPreimage = () => ({
  type: 0,
  fromAddress: { address: new Address(deployer().publicKey()).toScAddress().toXdrObject(), salt: wasmHash() }
})

/** The contract's address on an embedded ledger with this passphrase. Other code has another address. */
export const localContractOf = (passphrase: string): string => {
  const preimage = xdr.HashIdPreimage.schema.encode({
    type: 8,
    contractId: {
      networkId: networkIdOf(passphrase),
      contractIdPreimage: contractIdPreimage()
    }
  } as never)
  return StrKey.encodeContract(hash(preimage))
}

/** The network's maximum lifetime, and the remaining ledgers below which it is extended again. */
const lifeLedgers = 3_110_399
const ledgersLeftMin = 2_000_000

const instanceKey = (contract: string): xdr.LedgerKey =>
  xdr.LedgerKey.contractData(
    new xdr.LedgerKeyContractData({
      contract: new Address(contract).toScAddress(),
      key: xdr.ScVal.scvLedgerKeyContractInstance(),
      durability: xdr.ContractDataDurability.persistent
    })
  )

const codeKey = (): xdr.LedgerKey => xdr.LedgerKey.contractCode(new xdr.LedgerKeyContractCode({ hash: wasmHash() }))

const accountKey = (address: string): xdr.LedgerKey =>
  xdr.LedgerKey.account(new xdr.LedgerKeyAccount({ accountId: Keypair.fromPublicKey(address).xdrAccountId() }))

/** A method's result. A ledger with injected faults may not give one. */
const ask = Effect.fnUntraced(function* (
  method: string,
  params: unknown
): Effect.fn.Return<any, DeploymentFailed, LocalLedger> {
  const unanswered = () => new DeploymentFailed({ message: `the embedded ledger does not answer ${method}` })
  const request = { jsonrpc: "2.0", id: 1, method, params }
  const response = yield* Effect.mapError((yield* LocalLedger).rpc(request), unanswered)
  return "result" in response ? response.result : yield* unanswered()
})

/** A ledger entry from the RPC; undefined when absent. */
const entryAt = Effect.fnUntraced(function* (key: xdr.LedgerKey) {
  const { entries, latestLedger } = yield* ask("getLedgerEntries", { keys: [key.toXdr("base64")] })
  const [entry] = entries
  return entry === undefined
    ? undefined
    : { xdr: entry.xdr as string, ledgersLeft: Number(entry.liveUntilLedgerSeq ?? 0) - Number(latestLedger) }
})

/** An operation before and after its simulation. */
interface Draft {
  readonly operation: (auth: Array<xdr.SorobanAuthorizationEntry>) => xdr.Operation
  /** Resource data from the simulation. */
  readonly data?: xdr.SorobanTransactionData
}

/** Sends one operation of the deployer, authorized as its source, and closes a ledger over it. */
const execute = Effect.fnUntraced(function* ({ data, operation }: Draft) {
  const ledger = yield* LocalLedger
  const signer = deployer()
  const account = yield* entryAt(accountKey(signer.publicKey()))
  const entry = xdr.LedgerEntryData.schema.decode(bytesOf(account?.xdr ?? ""))
  const sequence = "account" in entry ? BigInt(entry.account.seqNum) : 0n
  const built = (auth: ReadonlyArray<string>, resources: xdr.SorobanTransactionData | undefined) => {
    const source = new Account(signer.publicKey(), sequence.toString())
    const builder = new TransactionBuilder(source, { fee: "100", networkPassphrase: ledger.passphrase })
      .addOperation(operation(auth.map((recorded) => xdr.SorobanAuthorizationEntry.fromXdr(recorded, "base64"))))
      .setTimeout(0)
    return (resources === undefined ? builder : builder.setSorobanData(resources)).build()
  }
  const simulated = yield* ask("simulateTransaction", { transaction: built([], data).toXDR() })
  if (simulated.error !== undefined) return yield* new DeploymentFailed({ message: simulated.error })
  const auth: ReadonlyArray<string> = simulated.results?.[0]?.auth ?? []
  const transaction = built(auth, new SorobanDataBuilder(simulated.transactionData).build())
  transaction.sign(signer)
  const { status } = yield* ask("sendTransaction", { transaction: transaction.toXDR() })
  if (status !== "PENDING")
    return yield* new DeploymentFailed({ message: `the embedded ledger answered the transaction with ${status}` })
  return yield* ledger.close
})

const call = (func: xdr.HostFunction): Draft => ({
  operation: (auth) => Operation.invokeHostFunction({ func, auth })
})

/** Extends the lifetime of the contract's instance and code to the network's maximum. */
const extension = (contract: string): Draft => ({
  operation: () => Operation.extendFootprintTtl({ extendTo: lifeLedgers }),
  data: new SorobanDataBuilder().setReadOnly([instanceKey(contract), codeKey()]).build()
})

const bytesOf = (base64: string): Uint8Array => Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))

const creation = () =>
  xdr.CreateContractArgs.fromXdrObject({
    contractIdPreimage: contractIdPreimage(),
    executable: { type: 0, wasmHash: wasmHash() }
  } as never)

/** Deploys the contract unless it exists, and keeps it alive; returns its address. */
export const deploy = Effect.fn("x402-upto-local.deploy")(function* () {
  const ledger = yield* LocalLedger
  const contract = localContractOf(ledger.passphrase)
  const account = deployer().publicKey()
  if ((yield* entryAt(accountKey(account))) === undefined) yield* Effect.orDie(ledger.fund(account))
  if ((yield* entryAt(instanceKey(contract))) === undefined) {
    yield* execute(call(xdr.HostFunction.hostFunctionTypeUploadContractWasm(settlementWasm())))
    yield* execute(call(xdr.HostFunction.hostFunctionTypeCreateContract(creation())))
  }
  const instance = yield* entryAt(instanceKey(contract))
  if (instance === undefined)
    return yield* new DeploymentFailed({ message: "the settlement contract is not on the embedded ledger" })
  if (instance.ledgersLeft < ledgersLeftMin) yield* execute(extension(contract))
  return contract
})

/** The plugin's start: a ledger with injected faults is retried for a while. */
export const layer = Layer.effectDiscard(
  Effect.orDie(deploy().pipe(Effect.timeout("5 seconds"), Effect.retry({ times: 20 })))
)
