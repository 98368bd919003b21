// `npm run guides`: the seller and the buyer of README.md, taken out of the page and run as they stand there, one whole
// payment each: with the packages that the page pins, and with the newest, where the page's own remedy is put in. Only
// ports, the key and the account are filled in. Prints how many blocks were run; fails when one is not.
import { Keypair } from "@stellar/stellar-sdk"
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { findNode, root } from "../../runtime/bootstrap.mjs"
import { freePort } from "../conformance/programs.ts"
import { askFriendbot } from "../support/rpcCall.ts"

const node = findNode()
const page = readFileSync(join(root, "README.md"), "utf8")
const blocks = [...page.matchAll(/```(\w+)\n([\s\S]*?)```/g)].map(([, language, text]) => ({ language, text: text! }))
const blockWith = (language: string, words: string): string => {
  const found = blocks.filter((block) => block.language === language && block.text.includes(words))
  if (found.length !== 1) throw new Error(`README.md has ${found.length} blocks of ${language} with ${words}`)
  return found[0]!.text
}
const install = blockWith("sh", "npm install @x402/core@")
const seller = blockWith("js", "paymentMiddleware(")
const buyer = blockWith("js", "wrapFetchWithPayment(fetch")
const remedy = blockWith("js", "class StellarScheme")

const state = mkdtempSync(join(tmpdir(), "tollkeeper-guides-"))
const [port, ledgerPort, httpsPort, sellerPort] = [
  await freePort(),
  await freePort(),
  await freePort(),
  await freePort()
]
const filled = (text: string): string =>
  text
    .replaceAll("127.0.0.1:4022", `127.0.0.1:${port}`)
    .replaceAll("127.0.0.1:8443", `127.0.0.1:${httpsPort}`)
    .replaceAll("127.0.0.1:3000", `127.0.0.1:${sellerPort}`)
    .replace("listen(3000)", `listen(${sellerPort})`)

/** Polls until something answers; a program that never does is the fault, said after two minutes. */
const until = async (what: string, isSo: () => Promise<boolean>): Promise<void> => {
  for (let looks = 0; looks < 600; looks++) {
    if (await isSo().catch(() => false)) return
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
  throw new Error(`${what} does not answer`)
}

/** The page's pins, and what is locked in the folder, are the same. */
const pinned = (folder: string): boolean =>
  [...install.matchAll(/(@x402\/\w+|express)@([\d.]+)/g)].every(([, name, version]) => {
    const { dependencies } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
    return dependencies[name!] === version
  })

const runSet = async (name: string, set: string, sellerText: string): Promise<void> => {
  const folder = join(root, "test", "official", set)
  if (!existsSync(join(folder, "node_modules")))
    spawnSync("npm", ["ci", "--loglevel=error"], { cwd: folder, stdio: "inherit" })
  const files = { seller: join(folder, "guide-seller.mjs"), buyer: join(folder, "guide-buyer.mjs") }
  writeFileSync(files.seller, filled(sellerText))
  writeFileSync(files.buyer, filled(buyer))
  const [owner, payer] = [Keypair.random(), Keypair.random()]
  for (const { publicKey } of [owner, payer].map((key) => ({ publicKey: key.publicKey() })))
    await askFriendbot(`http://127.0.0.1:${ledgerPort}`, publicKey, 1)
  const selling = spawn(node, [files.seller], {
    cwd: folder,
    env: { ...process.env, PAY_TO: owner.publicKey() },
    stdio: ["ignore", "inherit", "inherit"]
  })
  try {
    await until(
      `the seller of ${name}`,
      async () => (await fetch(`http://127.0.0.1:${sellerPort}/weather`)).status === 402
    )
    const preload = ["--import", join(root, "test", "official", "horizon.mjs")]
    const bought = spawnSync(node, [...preload, files.buyer], {
      cwd: folder,
      encoding: "utf8",
      timeout: 120_000,
      env: {
        ...process.env,
        BUYER_SECRET: payer.secret(),
        NODE_EXTRA_CA_CERTS: join(state, "ledger", "ledger-cert.pem"),
        LOCAL_HORIZON_PORT: String(httpsPort)
      }
    })
    const [status = ""] = bought.stdout.trim().split(" ")
    if (status !== "200") throw new Error(`the buyer of ${name} heard ${bought.stdout}${bought.stderr}`)
    console.log(`ok    ${name}: ${bought.stdout.trim().split("\n")[0]!.slice(0, 100)}`)
  } finally {
    selling.kill()
    await once(selling, "exit")
    for (const file of Object.values(files)) rmSync(file, { force: true })
  }
}

const ports = ["--port", port, "--ledger-port", ledgerPort, "--ledger-https-port", httpsPort].map(String)
const facilitator = spawn(node, [join(root, "runtime", "cli.ts"), "start", "--state", state, ...ports], {
  cwd: root,
  env: { ...process.env, DATABASE_URL: "" },
  stdio: "ignore"
})
try {
  await until("the facilitator", async () => (await fetch(`http://127.0.0.1:${port}/health/ready`)).ok)
  await until("the certificate", async () => existsSync(join(state, "ledger", "ledger-cert.pem")))
  if (!pinned(join(root, "test", "official", "a"))) throw new Error("README.md pins what test/official/a does not lock")
  await runSet("README.md with the pinned packages", "a", seller)
  const mended = seller.replace("new ExactStellarScheme()", "new StellarScheme()").replace("\n\n", `\n\n${remedy}\n`)
  await runSet("README.md with the newest packages and the remedy", "c", mended)
  console.log("4 of 4 blocks of README's seller and buyer were run, the install line held to the lock")
} finally {
  process.kill(facilitator.pid!, "SIGTERM")
  await once(facilitator, "exit")
  rmSync(state, { recursive: true, force: true })
}
