// A smart wallet for tests: a contract account whose `__check_auth` verifies one ed25519 signature over the payload, as
// the smallest possible module. It is uploaded, created and funded by ordinary transactions through the official SDK.
import {
  Address,
  Asset,
  Contract,
  hash,
  Keypair,
  nativeToScVal,
  Networks,
  Operation,
  rpc,
  TransactionBuilder,
  xdr
} from "@stellar/stellar-sdk"
import type { Payer } from "../../runtime/redteam/authorization.ts"
import { testnetUsdcIssuer } from "../../runtime/redteam/balances.ts"
import { constant, environment, section, sized, text, u32Word } from "./contractModule.ts"

const I64 = 0x7e
const voidWord = 2n

/** The module's bytes for the wallet of `publicKey`. */
const moduleOf = (publicKey: Uint8Array): Uint8Array =>
  Uint8Array.from([
    0,
    0x61,
    0x73,
    0x6d,
    1,
    0,
    0,
    0,
    ...section(1, [0x60, 2, I64, I64, 1, I64], [0x60, 3, I64, I64, I64, 1, I64]),
    // bytes_new_from_linear_memory and verify_sig_ed25519
    ...section(2, [...text("b"), ...text("3"), 0, 0], [...text("c"), ...text("0"), 0, 1]),
    ...section(3, [1]),
    ...section(5, [0, 1]),
    ...section(7, [...text("__check_auth"), 0, 2], [...text("memory"), 2, 0]),
    ...section(
      10,
      sized([
        0,
        ...constant(u32Word(0)),
        ...constant(u32Word(32)),
        0x10,
        0,
        0x20,
        0,
        0x20,
        1,
        0x10,
        1,
        0x1a,
        ...constant(voidWord),
        0x0b
      ])
    ),
    ...section(11, [0, 0x41, 0, 0x0b, ...sized([...publicKey])]),
    ...environment
  ])

const usdc = new Asset("USDC", testnetUsdcIssuer)

/** Signs and submits one operation of `account`, and waits for its success. */
const execute = async (server: rpc.Server, account: Keypair, operation: xdr.Operation): Promise<void> => {
  const source = await server.getAccount(account.publicKey())
  const built = new TransactionBuilder(source, { fee: "1000", networkPassphrase: Networks.TESTNET })
    .addOperation(operation)
    .setTimeout(60)
    .build()
  const prepared = await server.prepareTransaction(built)
  prepared.sign(account)
  const { hash: sent, status } = await server.sendTransaction(prepared)
  const result = await server.pollTransaction(sent, { attempts: 100, sleepStrategy: () => 100 })
  if (result.status !== "SUCCESS") throw new Error(`${status}, then ${result.status}`)
}

/** A contract's balance in atomic units of USDC. */
export const contractUsdc = async (ledgerUrl: string, contract: string): Promise<bigint> =>
  BigInt(
    (await new rpc.Server(ledgerUrl, { allowHttp: true }).getSACBalance(contract, usdc, Networks.TESTNET)).balanceEntry
      ?.amount ?? 0
  )

/** A wallet's code, and its `__check_auth` value for a payload. */
export interface WalletKind {
  readonly wasm: Uint8Array
  readonly sign: (payload: Uint8Array) => xdr.ScVal
}

/** The wallet of a new ed25519 key. */
export const keyWallet = (): WalletKind => {
  const owner = Keypair.random()
  return { wasm: moduleOf(owner.rawPublicKey()), sign: (payload) => xdr.ScVal.scvBytes(owner.sign(payload)) }
}

/**
 * Creates the wallet on the ledger at `ledgerUrl` and moves `amount` atomic units of USDC to it from `funder`, which
 * pays all fees.
 */
export const makeSmartWallet = async (
  ledgerUrl: string,
  funder: Keypair,
  amount: bigint,
  { sign, wasm }: WalletKind = keyWallet()
): Promise<Payer & { readonly contract: string }> => {
  const server = new rpc.Server(ledgerUrl, { allowHttp: true })
  await execute(server, funder, Operation.uploadContractWasm({ wasm: Buffer.from(wasm) }))
  const salt = Keypair.random().rawPublicKey()
  await execute(
    server,
    funder,
    Operation.createCustomContract({
      address: new Address(funder.publicKey()),
      wasmHash: hash(Buffer.from(wasm)),
      salt
    })
  )
  const preimage = new xdr.HashIdPreimageContractId({
    networkId: hash(new TextEncoder().encode(Networks.TESTNET)),
    contractIdPreimage: xdr.ContractIdPreimage.contractIdPreimageFromAddress(
      new xdr.ContractIdPreimageFromAddress({ address: new Address(funder.publicKey()).toScAddress(), salt })
    )
  })
  const contract = Address.contract(hash(xdr.HashIdPreimage.envelopeTypeContractId(preimage).toXdr())).toString()
  await execute(
    server,
    funder,
    new Contract(usdc.contractId(Networks.TESTNET)).call(
      "transfer",
      new Address(funder.publicKey()).toScVal(),
      new Address(contract).toScVal(),
      nativeToScVal(amount, { type: "i128" })
    )
  )
  return { contract, sign }
}
