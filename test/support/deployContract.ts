// Deploys a contract to the local ledger from outside, over its RPC, with an account that the friendbot has funded.
// With the same account and salt it has the same address on every ledger with the same passphrase, so that a test can
// use the address before the contract exists.
import { Address, hash, Keypair, Networks, Operation, rpc, StrKey, TransactionBuilder, xdr } from "@stellar/stellar-sdk"
import { askFriendbot } from "../../runtime/redteam/rpcCall.ts"

/** The address of the contract that `deployer` creates with `salt`. */
export const contractAddressOf = (deployer: Keypair, salt: Uint8Array): string =>
  StrKey.encodeContract(
    hash(
      xdr.HashIdPreimage.envelopeTypeContractId(
        new xdr.HashIdPreimageContractId({
          networkId: hash(Buffer.from(Networks.TESTNET)),
          contractIdPreimage: xdr.ContractIdPreimage.contractIdPreimageFromAddress(
            new xdr.ContractIdPreimageFromAddress({ address: new Address(deployer.publicKey()).toScAddress(), salt })
          )
        })
      ).toXdr()
    )
  )

/** Signs and submits one operation of `account`, and waits for its success. */
export const execute = async (server: rpc.Server, account: Keypair, operation: xdr.Operation): Promise<void> => {
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

/** Uploads and creates the contract; returns its address. */
export const deployContract = async (
  ledger: string,
  deployer: Keypair,
  wasm: Uint8Array,
  salt: Uint8Array
): Promise<string> => {
  const server = new rpc.Server(ledger, { allowHttp: true })
  await askFriendbot(ledger, deployer.publicKey())
  await execute(server, deployer, Operation.uploadContractWasm({ wasm: Buffer.from(wasm) }))
  const created = Operation.createCustomContract({
    address: new Address(deployer.publicKey()),
    wasmHash: Buffer.from(hash(wasm)),
    salt: Buffer.from(salt)
  })
  await execute(server, deployer, created)
  return contractAddressOf(deployer, salt)
}
