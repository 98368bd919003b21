// Deploys a contract to the embedded ledger with ordinary transactions of a dedicated account: upload, then create. The
// account's key and the salt derive from a name and from the code, so the contract's address is known before the ledger
// exists, and an existing contract is not changed. The ledger's journal contains the deployment.
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
import { LocalLedger } from "./LocalLedger.ts"

/** The embedded ledger did not accept the contract. */
class DeploymentFailed extends Schema.TaggedError<DeploymentFailed>()("DeploymentFailed", {
  message: Schema.String
}) {}

const utf8 = new TextEncoder()
const networkIdOf = (passphrase: string): Uint8Array => hash(utf8.encode(passphrase))

export interface LocalContract {
  /** Names the account that deploys it; each contract has a separate account. */
  readonly deployer: string
  /** sha256 of the module, hex. */
  readonly wasmHash: string
  readonly wasm: () => Uint8Array
}

/** The deployer's account. Its key is public: it holds nothing anywhere but on this ledger. */
const deployerOf = ({ deployer }: LocalContract): Keypair => Keypair.fromRawEd25519Seed(hash(utf8.encode(deployer)))

const hashOf = ({ wasmHash }: LocalContract): Uint8Array => Result.getOrThrow(Hex.decode(wasmHash))

const preimageOf = (contract: LocalContract) => ({
  type: 0,
  fromAddress: {
    address: new Address(deployerOf(contract).publicKey()).toScAddress().toXdrObject(),
    salt: hashOf(contract)
  }
})

/** The contract's address on an embedded ledger with this passphrase. Other code has another address. */
export const localAddressOf = (contract: LocalContract, passphrase: string): string => {
  const preimage = xdr.HashIdPreimage.schema.encode({
    type: 8,
    contractId: {
      networkId: networkIdOf(passphrase),
      contractIdPreimage: preimageOf(contract)
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

const codeKey = (contract: LocalContract): xdr.LedgerKey =>
  xdr.LedgerKey.contractCode(new xdr.LedgerKeyContractCode({ hash: hashOf(contract) }))

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
const execute = Effect.fnUntraced(function* (signer: Keypair, { data, operation }: Draft) {
  const ledger = yield* LocalLedger
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
const extension = (contract: LocalContract, address: string): Draft => ({
  operation: () => Operation.extendFootprintTtl({ extendTo: lifeLedgers }),
  data: new SorobanDataBuilder().setReadOnly([instanceKey(address), codeKey(contract)]).build()
})

const bytesOf = (base64: string): Uint8Array => Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))

const creation = (contract: LocalContract) =>
  xdr.CreateContractArgs.fromXdrObject({
    contractIdPreimage: preimageOf(contract),
    executable: { type: 0, wasmHash: hashOf(contract) }
  } as never)

/** Deploys the contract unless it exists, and keeps it alive; returns its address. */
export const deployContract = Effect.fn("ledger-local.deployContract")(function* (contract: LocalContract) {
  const ledger = yield* LocalLedger
  const address = localAddressOf(contract, ledger.passphrase)
  const signer = deployerOf(contract)
  const account = signer.publicKey()
  if ((yield* entryAt(accountKey(account))) === undefined) yield* Effect.orDie(ledger.fund(account))
  if ((yield* entryAt(instanceKey(address))) === undefined) {
    yield* execute(signer, call(xdr.HostFunction.hostFunctionTypeUploadContractWasm(contract.wasm())))
    yield* execute(signer, call(xdr.HostFunction.hostFunctionTypeCreateContract(creation(contract))))
  }
  const instance = yield* entryAt(instanceKey(address))
  if (instance === undefined)
    return yield* new DeploymentFailed({ message: "the contract is not on the embedded ledger" })
  if (instance.ledgersLeft < ledgersLeftMin) yield* execute(signer, extension(contract, address))
  return address
})

/** A plugin's start that deploys a contract: a ledger with injected faults is retried for a while. */
export const deploying = (contract: LocalContract) =>
  Layer.effectDiscard(
    Effect.orDie(deployContract(contract).pipe(Effect.timeout("5 seconds"), Effect.retry({ times: 20 })))
  )
