// The ledger's content before anything happens.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Asset, hash, Keypair, Networks, xdr } from "@stellar/stellar-sdk"
import { LocalLedger } from "../../../../plugins/ledger-local/LocalLedger.ts"
import { TESTNET_PASSPHRASE } from "../../../../plugins/ledger-local/node/LedgerMachine.ts"
import { NATIVE_CONTRACT, USDC_CONTRACT, USDC_ISSUER } from "../../../../plugins/ledger-local/node/accounts.ts"
import { assetContractId } from "../../../../plugins/ledger-local/transaction/assetContractId.ts"
import { usdc } from "../../../../plugins/ledger-local/node/accounts.ts"
import { Crypto } from "../../../../kernel/platform/Crypto.ts"
import { StrKey } from "@stellar/stellar-sdk"
import { account, fund, ledgerLayer, usdcAdmin } from "../support.ts"

describe("genesis", () => {
  it("names the test network's own contracts for USDC and XLM", () => {
    expect(TESTNET_PASSPHRASE).toBe(Networks.TESTNET)
    expect(new Asset("USDC", USDC_ISSUER).contractId(Networks.TESTNET)).toBe(USDC_CONTRACT)
    expect(Asset.native().contractId(Networks.TESTNET)).toBe(NATIVE_CONTRACT)
  })

  it.effect("genesis is ledger 1 000 with live contracts and the issuer's local signer", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      const crypto = yield* Crypto
      const latest = yield* ledger.call("getLatestLedger")
      expect(latest.sequence).toBe(1_000)
      expect(Buffer.from(hash(Buffer.from(latest.headerXdr, "base64"))).toString("hex")).toBe(latest.id)
      const networkId = crypto.sha256(new TextEncoder().encode(Networks.TESTNET))
      expect(StrKey.encodeContract(assetContractId(crypto, networkId, usdc))).toBe(USDC_CONTRACT)
      const keys = [USDC_CONTRACT, NATIVE_CONTRACT].map((contract) =>
        xdr.LedgerKey.contractData(
          new xdr.LedgerKeyContractData({
            contract: xdr.ScAddress.scAddressTypeContract(new xdr.ContractId(StrKey.decodeContract(contract))),
            key: xdr.ScVal.scvLedgerKeyContractInstance(),
            durability: xdr.ContractDataDurability.persistent
          })
        ).toXdr("base64")
      )
      const { entries } = yield* ledger.call("getLedgerEntries", { keys })
      expect(entries.map((entry: any) => entry.liveUntilLedgerSeq)).toEqual([3_111_399, 3_111_399])
      const issuer = (yield* account(USDC_ISSUER))!
      expect(issuer.signers.map(({ key }) => key.toXdr("hex").slice(8))).toEqual([
        Buffer.from((yield* usdcAdmin).rawPublicKey()).toString("hex")
      ])
      yield* ledger.close
      const next = xdr.LedgerHeader.fromXdr((yield* ledger.call("getLatestLedger")).headerXdr, "base64")
      expect(Buffer.from(next.previousLedgerHash.toXdrObject()).toString("hex")).toBe(latest.id)
    }).pipe(Effect.provide(ledgerLayer()))
  )

  it.effect("ledgers never create or lose native balance", () =>
    Effect.gen(function* () {
      const ledger = yield* LocalLedger
      yield* fund("one", 5n)
      yield* fund("two")
      yield* fund("one", 7n)
      let sum = ledger.ledger.latest.feePoolStroops
      for (const entry of ledger.ledger.store.entries()) if (entry.data.type === 0) sum += entry.data.account.balance
      expect(sum).toBe(xdr.LedgerHeader.fromXdr((yield* ledger.call("getLatestLedger")).headerXdr, "base64").totalCoins)
      expect(yield* account(Keypair.random().publicKey())).toBeUndefined()
    }).pipe(Effect.provide(ledgerLayer()))
  )
})
