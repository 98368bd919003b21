// Two people's paths, counted in steps and seconds: a newcomer's from a clone to a page that shows a payment; and that
// of an operator who has a hash from a seller's mail and wants the reason, by the page and by a command. A step is an
// action of the person: a command, an address, a typed word. Pages are opened in Chromium; without it their paths are
// skipped, with a message.
import { Keypair } from "@stellar/stellar-sdk"
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { readdirSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { type Browser, chromium } from "playwright-core"
import { root } from "../../runtime/bootstrap.mjs"
import { chromiumPath } from "../browser/chromium.ts"
import { makePayment } from "../../runtime/redteam/buyer.ts"
import { askFriendbot } from "../../runtime/redteam/rpcCall.ts"
import type { Outcome, Played } from "./operatorItems.ts"

interface Step {
  readonly does: string
  readonly seconds: number
  readonly sees: string
}

export interface Path {
  readonly name: string
  readonly steps: ReadonlyArray<Step>
  /** The error that ended it, if any. */
  readonly failure?: string
}

/** Timeout of a command, of an installation with the start after it, and of a page. */
const waitMillis = 180_000
const installMillis = 600_000
const pageMillis = 60_000

/** Walks a path: each step is timed, and the first that fails ends it. */
const walk = async (
  name: string,
  way: (step: <A>(does: string, work: () => Promise<A>, sees: (result: A) => string) => Promise<A>) => Promise<void>
): Promise<Path> => {
  const steps: Array<Step> = []
  try {
    await way(async (does, work, sees) => {
      const begun = performance.now()
      const result = await work()
      steps.push({ does, seconds: (performance.now() - begun) / 1_000, sees: sees(result).slice(0, 200) })
      return result
    })
    return { name, steps }
  } catch (error) {
    return { name, steps, failure: error instanceof Error ? error.message.slice(0, 600) : String(error) }
  }
}

export const printPath = ({ failure, name, steps }: Path): void => {
  const seconds = steps.reduce((sum, step) => sum + step.seconds, 0)
  const sum = `${steps.length} ${steps.length === 1 ? "step" : "steps"}, ${seconds.toFixed(1)} s`
  console.log(`${failure === undefined ? "ok    " : "FAILED"} ${name}: ${failure === undefined ? sum : failure}`)
  for (const { does, sees, seconds } of steps)
    console.log(`      ${seconds.toFixed(1).padStart(6)} s  ${does.padEnd(48)} ${sees}`)
}

/** A line of a program's output. */
const lineOf = (text: string, shows: RegExp): string => {
  const found = shows.exec(text)
  if (found === null) throw new Error(`nothing shows ${shows}:\n${text.slice(-500)}`)
  return found[0].trim()
}

const run = async (command: string, args: ReadonlyArray<string>, cwd: string): Promise<string> => {
  const child = spawn(command, [...args], { cwd, env: environment(), stdio: ["ignore", "pipe", "pipe"] })
  let text = ""
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (chunk) => (text += chunk))
  const timer = setTimeout(() => child.kill("SIGKILL"), waitMillis)
  const [status] = await once(child, "exit")
  clearTimeout(timer)
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} ends with ${status}:\n${text.slice(-500)}`)
  return text
}

/** Variables that npm sets for the running script would confuse the clone's. */
const environment = (): NodeJS.ProcessEnv => ({
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("npm_"))),
  DATABASE_URL: ""
})

/** `npm start` in the clone, until it is ready; it first installs missing packages. */
const startIn = async (folder: string): Promise<{ readonly url: string; readonly child: ChildProcess }> => {
  const ports = ["--port", "0", "--ledger-port", "0", "--ledger-https-port", "0"]
  // A separate process group, so that programs started by npm end with it.
  const child = spawn("npm", ["start", "--", ...ports], { cwd: folder, env: environment(), detached: true })
  let text = ""
  const url = await new Promise<string>((resolve, reject) => {
    const read = (chunk: string) => {
      text += chunk
      const at = /facilitator (http:\/\/[\d.]+:\d+)/.exec(text)?.[1]
      if (at === undefined || !text.includes('"event":"ready"')) return
      clearTimeout(timer)
      resolve(at)
    }
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", read)
    child.on("exit", (status) => reject(new Error(`npm start ends with ${status}:\n${text.slice(-500)}`)))
    const late = () => {
      process.kill(-child.pid!, "SIGKILL")
      reject(new Error(`npm start is not ready:\n${text.slice(-500)}`))
    }
    const timer = setTimeout(late, installMillis)
    child.on("exit", () => clearTimeout(timer))
  })
  return { url, child }
}

const inBrowser = async <A>(work: (browser: Browser) => Promise<A>): Promise<A> => {
  const browser = await chromium.launch({
    executablePath: chromiumPath()!,
    args: ["--no-sandbox", "--disable-dev-shm-usage"]
  })
  try {
    return await work(browser)
  } finally {
    await browser.close()
  }
}

/** The process in the state folder's note, because npm itself dies of a signal. */
const stopOf = async (folder: string, child: ChildProcess): Promise<void> => {
  const [note = ""] = readdirSync(join(folder, ".tollkeeper", "running"))
  const ended = once(child, "exit")
  process.kill(Number.parseInt(note), "SIGTERM")
  await ended
}

/** From a clone to a page that shows a payment; in `folder`, which does not exist yet. */
export const newcomer = (folder: string): Promise<Path> =>
  walk("a newcomer: from a clone to a page that shows a payment", async (step) => {
    const clone = ["clone", "--quiet", "--depth", "1", `file://${root}`, folder]
    await step(
      "git clone … && cd tollkeeper",
      () => run("git", clone, root),
      () => "cloned"
    )
    const { child, url } = await step(
      "npm start",
      () => startIn(folder),
      ({ url }) => url
    )
    try {
      const paid = await step(
        "npm run pay (another terminal)",
        () => run("npm", ["run", "pay"], folder),
        (text) => lineOf(text, /SUCCESS in ledger \d+/)
      )
      const hash = lineOf(paid, /\b[0-9a-f]{64}\b/)
      await inBrowser(async (browser) => {
        const page = await browser.newPage()
        await step(
          `open ${url}/dashboard#settlements`,
          async () => {
            await page.goto(`${url}/dashboard#settlements`)
            await page.locator(`a[href*="${hash}"]`).first().waitFor({ timeout: pageMillis })
            return page.locator("tbody tr").first().innerText()
          },
          (row) => row.replaceAll(/\s+/g, " ")
        )
      })
    } finally {
      await stopOf(folder, child)
    }
  })

interface World extends Played {
  readonly at: string
  readonly ledgerUrl: string
  readonly state: string
}

/** Two payments of one payer that has the money for one of them, at the same time: the other fails on the ledger. */
const failedPayment = async ({ at, ledgerUrl }: World): Promise<string> => {
  for (let tries = 0; tries < 6; tries++) {
    const [payer, payee] = [Keypair.random(), Keypair.random()]
    await askFriendbot(ledgerUrl, payer.publicKey(), 1)
    await askFriendbot(ledgerUrl, payee.publicKey(), 0)
    const made = await Promise.all(
      [6_000_000n, 7_000_000n].map((amount) => makePayment({ rpc: ledgerUrl, payer, payTo: payee.publicKey(), amount }))
    )
    const answers = await Promise.all(
      made.map(async ({ body }) => {
        const headers = { "content-type": "application/json" }
        const answer = await fetch(`${at}/settle`, { method: "POST", headers, body: JSON.stringify(body) })
        return (await answer.json()) as { readonly success: boolean; readonly transaction?: string }
      })
    )
    const failed = answers.find(({ success, transaction }) => !success && /^[0-9a-f]{64}$/.test(transaction ?? ""))
    if (failed !== undefined) return failed.transaction!
  }
  throw new Error("no payment fails on the ledger")
}

/** From a hash in a seller's mail to the reason, by the page and by a command. */
export const mail = async (world: World): Promise<ReadonlyArray<Path>> => {
  const hash = await failedPayment(world)
  const { at, state, tollkeeper } = world
  /** The sentence of the page for a settlement that failed on the ledger. */
  const says = /The transaction failed on the ledger/
  const byCommand = await walk("an operator: from a hash to its reason, by a command", async (step) => {
    await step(
      `tollkeeper settlements explain ${hash.slice(0, 8)}…`,
      () => tollkeeper("settlements", "explain", hash, "--state", state),
      ({ text }: Outcome) => lineOf(text, /^.*outcome .*$/m)
    )
  })
  if (chromiumPath() === undefined) return [byCommand]
  const byPage = await walk("an operator: from a hash to its reason, by the page", (step) =>
    inBrowser(async (browser) => {
      const page = await browser.newPage()
      await step(
        `open ${at}/dashboard`,
        async () => {
          await page.goto(`${at}/dashboard`)
          await page.getByRole("combobox", { name: "Find" }).waitFor({ timeout: pageMillis })
        },
        () => "a box to find things above every view"
      )
      await step(
        "paste the hash, Enter",
        async () => {
          const box = page.getByRole("combobox", { name: "Find" })
          await box.fill(hash)
          await box.press("Enter")
          await page.getByText(says).first().waitFor({ timeout: pageMillis })
          return page.getByText(says).first().innerText()
        },
        (text) => text.replaceAll(/\s+/g, " ")
      )
    })
  )
  return [byCommand, byPage]
}
