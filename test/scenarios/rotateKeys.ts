// Key rotation while payments continue, by every route: files that the running processes reread, variables and settings
// by a rolling restart, a sealed file, a signer on another machine; channels, and the callers' own keys. Each time a
// payment is pending with the previous keys, and settles.
import { Keypair } from "@stellar/stellar-sdk"
import { Effect, Exit, Scope } from "effect"
import { renameSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"
import { settingsOf, signerEnvironment, startSigners } from "../support/signers.ts"
import { pendingPayment, settledInTheEnd } from "./pendingPayment.ts"
import type { Stage } from "./Stage.ts"
import type { Signing, World } from "./World.ts"

const testnet = "networks.ledger:testnet"
const passphrase = "a passphrase of the operator"
const followMillisMax = 120_000

const secrets = (pairs: ReadonlyArray<Keypair>): string => pairs.map((pair) => pair.secret()).join()

/** Waits until both replicas report this sponsor. */
const sponsored = async (world: World, sponsor: Keypair): Promise<void> => {
  const end = performance.now() + followMillisMax
  for (const replica of world.replicas) {
    while ((await world.ask(replica, "/supported")).kinds?.[0]?.signer !== sponsor.publicKey()) {
      if (performance.now() > end) throw new Error(`${replica.name} does not follow to ${sponsor.publicKey()}`)
      await sleep(200)
    }
  }
  world.sponsor = sponsor
}

/** A payment is in flight during `change`; it settles, and so do new ones. */
const beside = async (world: World, change: () => Promise<void>): Promise<void> => {
  world.hold(true)
  const pending = await pendingPayment(world)
  try {
    await change()
  } finally {
    world.hold(false)
  }
  await settledInTheEnd(world, pending)
  await world.traffic.more(4)
}

/** Seeds elsewhere: settings and variables change, so the replicas are recreated one by one. */
const rolling = async (world: World, signing: Signing): Promise<void> => {
  world.signing = signing
  for (const replica of world.replicas) await world.recreate(replica)
}

export const rotateKeys = async ({ alerts, world }: Stage): Promise<string> => {
  await alerts.silent("TollkeeperDown")
  const scope = Effect.runSync(Scope.make())
  const signers = await Effect.runPromise(Scope.provide(startSigners, scope))
  const past = [world.sponsor]
  const next = async (pair = Keypair.random()): Promise<Keypair> => {
    await world.fund(pair.publicKey())
    past.unshift(pair)
    return pair
  }
  const channelsOf = { environment: { CHANNELS_FILE: world.file("channels") }, set: world.signing.set }
  const done: Array<string> = []
  const route = async (name: string, change: () => Promise<void>): Promise<void> => {
    await beside(world, change)
    done.push(name)
  }
  const before = world.traffic.paid.length

  await route("a file", async () => {
    const sponsor = await next()
    world.write("sponsor", secrets(past))
    await world.besideOne("keys", "rotate", "sponsor", "--reason", "a drill")
    await sponsored(world, sponsor)
  })
  await route("channels", async () => {
    const channels = world.channels.map(() => Keypair.random())
    world.write("channels", `${secrets(channels)};${secrets(world.channels)}`)
    await world.besideOne("keys", "rotate", "channels", "--reason", "a drill")
    world.channels = channels
  })
  await route("a variable", async () => {
    const sponsor = await next()
    const environment = { ...channelsOf.environment, SPONSOR_SECRET: secrets(past) }
    await rolling(world, { environment, set: channelsOf.set })
    await sponsored(world, sponsor)
  })
  const seal = (name: string) =>
    world.operator(["keys", "seal", world.file(name), "--channels-env", "NONE", "--reason", "a drill"], {
      SPONSOR_SECRET: secrets(past),
      SEEDS_PASSPHRASE: passphrase
    })
  await route("a sealed file", async () => {
    const sponsor = await next()
    await seal("sealed")
    const environment = { ...channelsOf.environment, SEEDS_PASSPHRASE: passphrase }
    await rolling(world, { environment, set: [...channelsOf.set, `${testnet}.seeds_file=${world.file("sealed")}`] })
    await sponsored(world, sponsor)
  })
  await route("the sealed file sealed anew", async () => {
    const sponsor = await next()
    await seal("sealed.new")
    renameSync(world.file("sealed.new"), world.file("sealed"))
    await world.besideOne("keys", "rotate", "sponsor", "--reason", "a drill")
    await sponsored(world, sponsor)
  })
  await route("a signer elsewhere", async () => {
    const former = secrets(past)
    const sponsor = await next(signers.pair)
    const signer = JSON.stringify(settingsOf("vault-transit", signers.url))
    await rolling(world, {
      environment: { ...channelsOf.environment, ...signerEnvironment, SPONSOR_SECRET: former },
      set: [...channelsOf.set, `${testnet}.sponsor_signer=${signer}`]
    })
    await sponsored(world, sponsor)
  })
  await route("callers' keys", async () => {
    const [old, renewed] = [world.shopKey, "shop-key-renewed-0123456789"]
    world.writeKeys([renewed, old])
    for (const { name } of world.replicas)
      await world.operator(["keys", "reread", "--reason", "a drill", "--state", world.state(name)])
    world.shopKey = renewed
    world.writeKeys([renewed])
    for (const { name } of world.replicas)
      await world.operator(["keys", "reread", "--reason", "a drill", "--state", world.state(name)])
    for (const replica of world.replicas) {
      const statuses = [await world.ask(replica, "/supported"), await world.ask(replica, "/supported", old)]
      const reported = statuses.map(({ status }) => status).join()
      if (reported !== "200,401")
        throw new Error(`${replica.name} answers the new key and the old one with ${reported}`)
    }
  })
  world.onClose(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  await alerts.silent("TollkeeperDown")
  return (
    `by ${done.join(", ")}: one payment pending in each settled, ${world.traffic.paid.length - before} in all; ` +
    "no alert fired"
  )
}
