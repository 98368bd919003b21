// The target of a red-team run: any URL with the x402 protocol. The run reads the facilitator's networks and signing
// accounts from its own `/supported`, sends every request through `ask`, and examines every answer for leaked detail.
import { Keypair } from "@stellar/stellar-sdk"
import { type Answer, post, textOf } from "./ask.ts"
import { usdcBalance } from "./balances.ts"
import { askFriendbot, type RpcCall, rpcCall } from "./rpcCall.ts"

export type Kind = "facilitator" | "seller" | "mcp"

export interface Target {
  /** Address of the facilitator's base, of the paid page, or of the tool server's endpoint; without a final slash. */
  readonly url: string
  readonly kind: Kind
  /** Bearer key, for a target that asks for one. */
  readonly key?: string | undefined
  /** A ledger with a friendbot, on which the target settles; without it no case pays. */
  readonly ledger?: string | undefined
}

export const bearerOf = ({ key }: Pick<Target, "key">): Record<string, string> =>
  key === undefined ? {} : { authorization: `Bearer ${key}` }

/** The accounts of the cases that pay, each with one USDC. */
export interface Money {
  readonly ledger: string
  readonly rpc: RpcCall
  readonly buyer: Keypair
  readonly thief: Keypair
  readonly seller: Keypair
  /** Atomic units of buyer, thief and seller. */
  readonly held: () => Promise<ReadonlyArray<bigint>>
}

export interface World {
  readonly target: Target
  /** The spellings of networks that offer `exact`; at least one for a facilitator. */
  readonly networks: ReadonlyArray<string>
  /** Accounts that the facilitator signs with: the sponsor first. */
  readonly signers: ReadonlyArray<string>
  readonly money: Money | undefined
  /** Posts to a path below the target's URL, with its key. */
  readonly ask: (path: string, body: unknown, headers?: Record<string, string>, waitMs?: number) => Promise<Answer>
  /** Answers with internal detail or oversized headers, so far. */
  readonly leaks: Array<string>
}

const supportedOf = async (target: Target): Promise<any> => {
  const response = await fetch(`${target.url}/supported`, {
    headers: bearerOf(target),
    redirect: "manual",
    signal: AbortSignal.timeout(10_000)
  })
  if (!response.ok) throw new Error(`${target.url}/supported answered ${response.status}`)
  return JSON.parse(await textOf(response))
}

const moneyOn = async (ledger: string): Promise<Money> => {
  const rpc = rpcCall(ledger)
  const [buyer, thief, seller] = [Keypair.random(), Keypair.random(), Keypair.random()]
  const all = [buyer, thief, seller]
  for (const account of all) await askFriendbot(ledger, account.publicKey(), 1)
  const held = () => Promise.all(all.map((account) => usdcBalance(rpc, account.publicKey())))
  return { ledger, rpc, buyer, thief, seller, held }
}

/** Maximum number of the target's networks that are attacked: each takes hundreds of requests. */
const networksMax = 32

/** Most frameworks refuse larger header blocks than this. */
const headerBytesMax = 16_384

/** Stack frames, folders of a machine, and messages of drivers. */
const internals = /\bat .{1,200}:\d+:\d+\)?|node_modules|\/home\/|\/root\/|ECONNREFUSED|PostgresError|SqlError/

const leakIn = ({ headers, text }: Answer): string | undefined => {
  const size = [...headers].reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0)
  if (size > headerBytesMax) return `${size} bytes of headers`
  const found = internals.exec(text) ?? internals.exec([...headers].join("\n"))
  return found === null ? undefined : `internal detail: ${found[0].slice(0, 80)}`
}

/** Opens the target: rejects when it does not answer. */
export const openWorld = async (target: Target): Promise<World> => {
  const supported = target.kind === "facilitator" ? await supportedOf(target) : { kinds: [], signers: {} }
  const exact: ReadonlyArray<any> = supported.kinds.filter((kind: any) => kind.scheme === "exact")
  const named = exact.flatMap(({ network }): ReadonlyArray<string> => (typeof network === "string" ? [network] : []))
  const networks = [...new Set(named)].slice(0, networksMax)
  if (target.kind === "facilitator" && networks.length === 0) throw new Error(`${target.url} offers no exact payments`)
  const signers = [
    ...supported.kinds.map((kind: any) => kind.signer).filter((signer: unknown) => typeof signer === "string"),
    ...Object.values(supported.signers ?? {}).flat()
  ] as ReadonlyArray<string>
  const leaks: Array<string> = []
  const money = target.ledger === undefined ? undefined : await moneyOn(target.ledger)
  return {
    target,
    networks,
    signers: [...new Set(signers)],
    money,
    leaks,
    ask: async (path, body, headers = {}, waitMs = 30_000) => {
      const answer = await post(`${target.url}${path}`, body, waitMs, { ...bearerOf(target), ...headers })
      const leak = leakIn(answer)
      if (leak !== undefined) leaks.push(`${path}: ${leak}`)
      return answer
    }
  }
}

/** The kind of a target, by its answer to `/supported` or `initialize`, or by a 402. */
export const kindOf = async (url: string, key?: string): Promise<Kind> => {
  const headers = { accept: "application/json, text/event-stream", ...bearerOf({ key }) }
  const read = (path: string) =>
    fetch(`${url}${path}`, { headers, redirect: "manual", signal: AbortSignal.timeout(10_000) })
      .then(async (response) => ({ status: response.status, text: path === "" ? "" : await textOf(response) }))
      .catch(() => undefined)
  const supported = await read("/supported")
  if (supported?.status === 200 && supported.text.includes('"kinds"')) return "facilitator"
  if ((await read(""))?.status === 402) return "seller"
  const initialize = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "redteam", version: "1" } }
  const body = { jsonrpc: "2.0", id: 1, method: "initialize", params: initialize }
  const answer = await post(url, body, 10_000, headers).catch(() => undefined)
  if (answer?.text.includes("protocolVersion") === true) return "mcp"
  throw new Error(`${url} is no facilitator, seller or tool server that answers; --kind chooses one`)
}
