// The spending account's contract on the engine of the local ledger: an attacker has the agent's key and signs any
// call. Each refusal comes from its own guard: without the guard, the same attack succeeds.
import { readFileSync } from "node:fs"
import { beforeAll, expect, it } from "vitest"
import { accountWasmBase64, accountWasmHash } from "../../../plugins/mcp-tools-pay/account/accountWasm.ts"
import { contractIdOf } from "../../../plugins/ledger-local/engine/host/createContract.ts"
import type { HostResult } from "../../../plugins/ledger-local/engine/host/HostResult.ts"
import { address, bytes, i128, u32, u64, vec } from "../../../plugins/ledger-local/engine/xdr/ScVal.ts"
import { contractAddress, type ScAddress, type ScVal, xdrText } from "../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import { batchWasm } from "../../../plugins/x402-batch/contract.ts"
import { accountFolder, accountSource, buildAccount } from "../../contract/account.ts"
import { batchFolder } from "../../contract/batch.ts"
import { sha256Hex } from "../../contract/build.ts"
import {
  crypto,
  errorOf,
  type Key,
  keyOf,
  native,
  networkId,
  payee,
  payer as owner,
  sponsor,
  stranger,
  succeeded
} from "../ledger-local/engine/World.ts"
import { BatchWorld } from "../x402-batch/contract/BatchWorld.ts"

const agent = keyOf(31)
const cap = 100n
const day = 86_400n
const parts = [`${batchFolder}host.as`, `${accountFolder}account.as`].map((file) => readFileSync(file, "utf8"))
const source = parts.join("\n")

let wasm: Uint8Array
beforeAll(async () => {
  wasm = await buildAccount()
}, 60_000)

interface Policy {
  readonly agent?: Key
  readonly cap?: bigint
  readonly expiresAt?: bigint
  readonly recipients?: ReadonlyArray<Key>
}

class AccountWorld extends BatchWorld {
  readonly self: ScAddress
  readonly coin = contractAddress(this.contractId(native))
  #next = 1n

  constructor(module: Uint8Array) {
    super(batchWasm())
    const salt = new Uint8Array(32).fill(9)
    const contractIdPreimage = { type: 0 as const, fromAddress: { address: sponsor.address, salt } }
    const executable = { type: 0 as const, wasmHash: crypto.sha256(module) }
    const access = { mode: "record", randomNonce: () => 1n, useUpgradedAuth: true, allowNonRoot: false } as const
    this.commit(this.run({ type: 2, wasm: module }, [], { access }))
    const constructorArgs = [address(owner.address), ...this.policy()]
    const createContractV2 = { contractIdPreimage, executable, constructorArgs }
    this.commit(this.run({ type: 3, createContractV2 }, [], { access }))
    this.self = contractAddress(contractIdOf(crypto, networkId, contractIdPreimage))
    this.contractBalance(this.self, 1_000n)
    this.contractBalance(this.self, 1_000n, true, false, native)
  }

  commit(result: HostResult) {
    succeeded(result).changes.commit()
    return result
  }

  policy({ agent: key = agent, cap: most = cap, expiresAt, recipients = [payee] }: Policy = {}): Array<ScVal> {
    const list = vec(recipients.map((one) => address(one.address)))
    return [bytes(key.id.ed25519), address(this.usd), i128(most), u64(expiresAt ?? this.closeTime + 30n * day), list]
  }

  /** A call that the account authorizes by this key's signature. */
  signed(contract: ScAddress, fn: string, args: ReadonlyArray<ScVal>, by = agent, below: ReadonlyArray<any> = []) {
    const invoked = { contractAddress: contract, functionName: xdrText(fn), args: [...args] }
    const root = { function: { type: 0 as const, contractFn: invoked }, subInvocations: [...below] }
    const nonce = this.#next++
    const entry = this.sign({ ...by, address: this.self }, root, {
      nonce,
      expiration: this.ledger + 100,
      signers: [by]
    })
    return this.invoke(contract, fn, args, [entry])
  }

  pays(amount: bigint, to: Key = payee, by = agent, asset = this.usd): HostResult {
    return this.signed(asset, "transfer", [address(this.self), address(to.address), i128(amount)], by)
  }

  /** The owner's own call, as the transaction's source. */
  owned(fn: string, args: ReadonlyArray<ScVal>, by = owner): HostResult {
    const invoked = { contractAddress: this.self, functionName: xdrText(fn), args: [...args] }
    const root = { function: { type: 0 as const, contractFn: invoked }, subInvocations: [] }
    return this.run({ type: 0, invokeContract: invoked }, [{ credentials: { type: 0 }, rootInvocation: root }], {
      source: by
    })
  }
}

const attacks: ReadonlyArray<
  readonly [name: string, guard: string | undefined, attack: (world: AccountWorld) => HostResult]
> = [
  [
    "above the cap in one payment",
    "demand(!isLess(wordAt(policy, CAP), total), ABOVE_CAP)",
    (world) => world.pays(101n)
  ],
  [
    "above the cap in two payments",
    "demand(!isLess(wordAt(policy, CAP), total), ABOVE_CAP)",
    (world) => {
      world.commit(world.pays(60n))
      return world.pays(41n)
    }
  ],
  [
    "after the owner lowered the cap",
    "demand(!isLess(wordAt(policy, CAP), total), ABOVE_CAP)",
    (world) => {
      world.commit(world.pays(60n))
      world.commit(world.owned("allow", world.policy({ cap: 50n })))
      return world.pays(1n)
    }
  ],
  [
    "to another recipient",
    "demand(vecLength(recipients) == u32Val(0) || firstIndexOf(recipients, to) != VOID, OTHER_RECIPIENT)",
    (world) => world.pays(1n, stranger)
  ],
  [
    "of another asset",
    "demand(isSame(mapGet(called, CONTRACT), wordAt(policy, ASSET)), OTHER_CALL)",
    (world) => world.pays(1n, payee, agent, world.coin)
  ],
  [
    "by another key",
    "verifyEd25519(wordAt(policy, AGENT), payload, mapGet(wordAt(parts, 0), SIGNATURE))",
    (world) => world.pays(1n, payee, stranger)
  ],
  ["by the owner's key as the agent", undefined, (world) => world.pays(1n, payee, owner)],
  [
    "after the expiry",
    "demand(u64Of(closeTime()) < u64Of(wordAt(policy, EXPIRES_AT)), EXPIRED)",
    (world) => {
      world.closeTime += 30n * day
      return world.pays(1n)
    }
  ],
  [
    "after the revocation",
    undefined,
    (world) => {
      world.commit(world.owned("revoke", []))
      return world.pays(1n)
    }
  ],
  [
    "by the key that another one replaced",
    "verifyEd25519(wordAt(policy, AGENT), payload, mapGet(wordAt(parts, 0), SIGNATURE))",
    (world) => {
      world.commit(world.owned("allow", world.policy({ agent: keyOf(32) })))
      return world.pays(1n)
    }
  ],
  ["of zero", "demand(isLess(ZERO, amount), OTHER_CALL)", (world) => world.pays(0n)],
  ["of less than nothing", undefined, (world) => world.pays(-50n)],
  [
    "as another function of three arguments",
    "demand(mapGet(called, FUNCTION) == TRANSFER, OTHER_CALL)",
    (world) => {
      world.line(stranger, 500n)
      world.commit(world.owned("allow", world.policy({ recipients: [] })))
      const approval = [stranger.address, world.self].map(address)
      world.commit(world.call("approve", [...approval, i128(10n), u32(world.ledger + 50)], { source: stranger }))
      return world.signed(world.usd, "burn_from", [...approval.toReversed(), i128(1n)])
    }
  ],
  [
    "by an allowance",
    undefined,
    (world) =>
      world.signed(world.usd, "approve", [world.self, stranger.address].map(address).concat(i128(1n), u32(1_050)))
  ],
  [
    "by a deposit with a transfer below it",
    undefined,
    (world) => {
      world.commit(world.owned("allow", world.policy({ recipients: [] })))
      const transfer = world.invocation("transfer", [world.self, world.batch].map(address).concat(i128(20n)))
      const config = vec([
        address(world.self),
        bytes(agent.id.ed25519),
        address(payee.address),
        bytes(agent.id.ed25519),
        address(world.usd),
        u64(900n),
        bytes(new Uint8Array(32))
      ])
      return world.signed(world.batch, "deposit", [address(world.self), config, i128(20n)], agent, [transfer])
    }
  ],
  [
    "by the account's own policy",
    "requireAuth(getData(OWNER, INSTANCE))",
    (world) => world.signed(world.self, "allow", world.policy({ cap: 1_000n }))
  ],
  [
    "by the account's own withdrawal",
    "requireAuth(getData(OWNER, INSTANCE))",
    (world) => world.signed(world.self, "withdraw", [world.usd, payee.address].map(address).concat(i128(500n)))
  ],
  ["by the check's direct call", undefined, (world) => world.owned("__check_auth", [vec([]), vec([]), vec([])])],
  [
    "by a second construction",
    undefined,
    (world) => world.owned("__constructor", [address(stranger.address), ...world.policy()])
  ],
  [
    "by a deployment in its name",
    undefined,
    (world) => {
      const salt = new Uint8Array(32).fill(3)
      const contractIdPreimage = { type: 0 as const, fromAddress: { address: world.self, salt } }
      const created = {
        contractIdPreimage,
        executable: { type: 0 as const, wasmHash: crypto.sha256(wasm) },
        constructorArgs: [address(agent.address), ...world.policy()]
      }
      const root = { function: { type: 2 as const, createContractV2HostFn: created }, subInvocations: [] }
      const entry = world.sign({ ...agent, address: world.self }, root, {
        nonce: 99n,
        expiration: world.ledger + 100,
        signers: [agent]
      })
      return world.run({ type: 3, createContractV2: created }, [entry])
    }
  ]
]

it("the module is built from its sources, and its source has the same bytes", () => {
  expect([sha256Hex(wasm), Buffer.from(accountWasmBase64, "base64").equals(wasm)]).toEqual([accountWasmHash, true])
  expect(readFileSync(`${accountFolder}account.wasm`).equals(wasm)).toBe(true)
  expect(readFileSync(`${accountFolder}accountWasm.ts`, "utf8")).toBe(accountSource(wasm))
})

it.each(attacks)(
  "the agent's key moves nothing %s",
  async (_name, guard, attack) => {
    const refused = attack(new AccountWorld(wasm))
    expect(errorOf(refused)).toContain("Error(")
    if (guard === undefined) return
    expect(source.split(guard).length).toBe(2)
    const open = new AccountWorld(await buildAccount(source.replace(guard, "")))
    succeeded(attack(open))
  },
  60_000
)

it("the agent pays within each day's cap until the expiry; failed payments count nothing", () => {
  const world = new AccountWorld(wasm)
  world.commit(world.pays(60n))
  expect(errorOf(world.pays(40n, stranger))).toContain("Error(")
  world.commit(world.pays(40n))
  expect(errorOf(world.pays(1n))).toContain("Error(")
  world.closeTime = (world.closeTime / day + 1n) * day
  world.commit(world.pays(100n))
  world.commit(world.owned("revoke", []))
  world.commit(world.owned("revoke", []))
  world.commit(world.owned("withdraw", [world.usd, owner.address].map(address).concat(i128(800n))))
  expect(errorOf(world.owned("revoke", [], stranger))).toContain("Error(")
})
