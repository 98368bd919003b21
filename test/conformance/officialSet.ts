// One set of official packages: installed from its lockfile if it is missing, with its seller and its buyers as
// separate programs, and a tap between the seller and the facilitator.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFile, writeFile } from "node:fs/promises"
import { createHash } from "node:crypto"
import { join } from "node:path"
import { type Program, startProgram } from "./programs.ts"
import { startTap, type Tap } from "./tap.ts"
import { root, type World } from "./world.ts"

export type SetName = "a" | "b" | "c"

/** The outcome of one purchase by an official client. */
export interface Purchase {
  readonly error?: string
  readonly status: number
  readonly body: string
  readonly receipt?: any
  readonly milliseconds: number
  readonly responses: ReadonlyArray<{
    status: number
    paymentSignature?: string
    paymentRequired?: any
    paymentResponse?: any
  }>
}

export interface PurchaseOptions {
  /** Of the set's own seller, or a URL. */
  readonly path: string
  readonly secret: string
  readonly method?: string
  readonly json?: unknown
  readonly identifier?: string
}

export interface OfficialSet {
  readonly sellerUrl: string
  readonly tap: Tap
  /**
   * Buys one page with the official client; a failure of the client is in `error`. With `horizon: "down"` the client
   * cannot read the time between ledgers and assumes five seconds.
   */
  readonly buy: (options: PurchaseOptions, horizon?: "up" | "down") => Promise<Purchase>
  /** A payment that the official client made and did not send: its PaymentPayload. */
  readonly sign: (paymentRequired: unknown, secret: string) => Promise<any>
  readonly stop: () => Promise<void>
}

const folderOf = (name: string) => join(root, "test", "official", name)

/** Installs the packages of a set from its lockfile unless exactly that lockfile is already installed. */
export const installSet = async (name: string, say: (line: string) => void): Promise<void> => {
  const folder = folderOf(name)
  const expected = createHash("sha256")
    .update(await readFile(join(folder, "package-lock.json")))
    .digest("hex")
  const mark = join(folder, "node_modules", ".installed")
  if ((await readFile(mark, "utf8").catch(() => "")) === expected) return
  say(`installing the official packages of set ${name} …`)
  const child = spawn("npm", ["ci", "--no-audit", "--no-fund", "--ignore-scripts"], {
    cwd: folder,
    stdio: ["ignore", "ignore", "pipe"]
  })
  let errors = ""
  child.stderr.setEncoding("utf8").on("data", (chunk) => (errors += chunk))
  const [code] = await once(child, "exit")
  if (code !== 0) throw new Error(`npm ci in test/official/${name} ended with ${code}\n${errors}`)
  await writeFile(mark, expected)
}

/** Starts the seller (paid at `payTo`) and the buyers of a set. */
export const startSet = async (name: SetName, world: World, payTo: string, network: string): Promise<OfficialSet> => {
  const folder = folderOf(name)
  const tap = await startTap(world.facilitator)
  const programs: Array<Program> = []
  const start = (file: string, settings: unknown, horizonPort = new URL(world.ledgerHttps).port): Program => {
    const program = startProgram(
      process.execPath,
      ["--import", join(root, "test", "official", "horizon.mjs"), join(folder, file), JSON.stringify(settings)],
      {
        cwd: folder,
        env: {
          NODE_EXTRA_CA_CERTS: world.certificate,
          LOCAL_HORIZON_PORT: horizonPort
        }
      }
    )
    programs.push(program)
    return program
  }
  const stop = async () => {
    await Promise.all(programs.map((program) => program.stop()))
    await tap.stop()
  }
  try {
    const seller = start("seller.mjs", { facilitator: tap.url, payTo, network })
    const buyers = start("buyer.mjs", { rpc: world.ledgerHttps, network })
    // No program listens on port 1, so these buyers cannot reach Horizon.
    const cutOffBuyers = start("buyer.mjs", { rpc: world.ledgerHttps, network }, "1")
    const { url: sellerUrl } = await seller.next((line) => line.url !== undefined)
    for (const program of [buyers, cutOffBuyers]) await program.next((line) => line.ready === true)
    let id = 0
    const ask = (request: Record<string, unknown>, program = buyers) => {
      const mine = ++id
      program.send({ ...request, id: mine })
      return program.next((line) => line.id === mine)
    }
    return {
      sellerUrl,
      tap,
      buy: ({ path, ...rest }, horizon = "up") =>
        ask({ ...rest, url: new URL(path, sellerUrl).href }, horizon === "up" ? buyers : cutOffBuyers),
      sign: async (paymentRequired, secret) => {
        const { error, paymentPayload } = await ask({ paymentRequired, secret })
        if (error !== undefined) throw new Error(error)
        return paymentPayload
      },
      stop
    }
  } catch (error) {
    await stop()
    throw error
  }
}
