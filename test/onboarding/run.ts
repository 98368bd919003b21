// `npm run onboarding`: the first problems of a new user, operator or attacker, reproduced for real, one item after
// another. It prints each message, and at the end two people's paths in steps and seconds (`paths.ts`); `--paths` runs
// only these. It fails if a message is missing, does not explain what to do, or shows a stack trace, and if a path
// breaks. Ports are free ones, folders are temporary, and every process it starts is stopped.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { parseArgs } from "node:util"
import { root } from "../../runtime/bootstrap.mjs"
import { chromiumPath, howToGetOne } from "../browser/chromium.ts"
import { freePort } from "../support/freePort.ts"
import { type Item, type Outcome, served, unstarted } from "./operatorItems.ts"
import { mail, newcomer, type Path, printPath } from "./paths.ts"
import {
  answerOf,
  cli,
  folder,
  freePorts,
  inFolder,
  node,
  oldNode,
  program,
  raw,
  sentenceIn,
  startServing,
  tollkeeper
} from "./play.ts"
import { short, startReceiver } from "./shortageItems.ts"

const { values } = parseArgs({ options: { paths: { type: "boolean", default: false } } })

const state = inFolder("state")
const [port, ledgerPort] = [await freePort(), await freePort()]
/** A page of another origin that is allowed. */
const origin = "https://shop.example"
const own = ["--state", state, "--port", String(port), "--ledger-port", String(ledgerPort), "--ledger-https-port", "0"]
const allowing = ["--set", `server.allowed_origins=["${origin}"]`]
const at = `http://127.0.0.1:${port}`
writeFileSync(inFolder("a-file"), "")
mkdirSync(inFolder("thesis"))
writeFileSync(join(inFolder("thesis"), "chapter.txt"), "years of work")

const before: ReadonlyArray<Item> = [
  {
    name: "npm run pay, nothing runs",
    play: () => program([join(root, "examples/pay.ts"), "--state", state]),
    says: /no facilitator answers .*npm start/
  },
  {
    name: "an old Node without the optional parts",
    play: oldNode,
    says: /Node 20\.9\.0 cannot run it.*install Node 24/
  },
  {
    name: "a state folder below a file",
    play: () => tollkeeper("start", "--state", join(inFolder("a-file"), "x"), ...freePorts),
    says: /cannot be written: .*--state DIR/
  },
  {
    name: "a read-only place",
    play: () => tollkeeper("start", "--state", "/proc/tollkeeper", ...freePorts),
    says: /cannot be written.*--state DIR/
  },
  ...(process.platform === "linux"
    ? [
        {
          name: "a place where nothing can be written",
          play: () => tollkeeper("backup", "save", "/dev/full/x", "--state", inFolder("new")),
          says: /nothing was ever started over .*--state DIR|cannot be written: /
        }
      ]
    : []),
  {
    name: "a database that does not answer",
    play: () =>
      program([cli, "start", "--state", inFolder("db"), ...freePorts], {
        DATABASE_URL: "postgres://nobody@127.0.0.1:1/x"
      }),
    says: /does not answer( \(.*\))?; start the PostgreSQL.*DATABASE_URL/
  },
  {
    name: "a profile that lacks what it needs",
    play: () => tollkeeper("config", "check", "--profile", "self-hosted"),
    says: /missing: .*RPC endpoint is required; give it with --set/
  },
  { name: "a misspelt command", play: () => tollkeeper("strat"), says: /did you mean start/ },
  { name: "a misspelt flag", play: () => tollkeeper("start", "--prot", "1"), says: /did you mean --port/ },
  {
    name: "a misspelt setting",
    play: () => tollkeeper("start", "--state", inFolder("s"), "--set", "server.prot=1", ...freePorts),
    says: /server\.prot: no such setting; did you mean port/
  },
  {
    name: "a misspelt plugin",
    play: () => tollkeeper("start", "--state", inFolder("s"), "--set", "plugins=[x402-exatc]"),
    says: /did you mean x402-exact/
  },
  {
    name: "a misspelt profile",
    play: () => tollkeeper("start", "--profile", "locl"),
    says: /did you mean --profile local/
  },
  { name: "--help", play: () => tollkeeper("start", "--help"), says: /--port integer .*default 4022/, status: 0 },
  {
    name: "reset of a folder that is not ours",
    play: () => tollkeeper("reset", "--state", inFolder("thesis"), "--yes"),
    says: /does not carry Tollkeeper's mark.*nothing was deleted; name/
  },
  {
    name: "keys reread, nothing runs",
    play: () => tollkeeper("keys", "reread", "--reason", "a drill", "--state", inFolder("new2")),
    says: /no process runs over .*could reread its keys; name another folder with --state DIR/
  }
]

const slowHead = async (): Promise<Outcome> => {
  const begun = performance.now()
  await raw(port, ["GET /health HTTP/1.1", "Host: 127.0.0.1", "X-Slow: "], "")
  const seconds = Math.round((performance.now() - begun) / 100) / 10
  return { status: 0, text: `a head that does not end is let go after ${seconds} s; send it whole` }
}

const beside: ReadonlyArray<Item> = [
  {
    name: "a second start over the same state",
    play: () => tollkeeper("start", ...own),
    says: /already runs over .*stop it .*--state DIR/
  },
  {
    name: "the facilitator's port is taken",
    play: () =>
      tollkeeper(
        "start",
        "--state",
        inFolder("b"),
        "--port",
        String(port),
        "--ledger-port",
        "0",
        "--ledger-https-port",
        "0"
      ),
    says: /port \d+ of 127\.0\.0\.1 is taken by another program; stop that one, or .*--port PORT/
  },
  {
    name: "the ledger's port is taken",
    play: () =>
      tollkeeper(
        "start",
        "--state",
        inFolder("c"),
        "--port",
        "0",
        "--ledger-port",
        String(ledgerPort),
        "--ledger-https-port",
        "0"
      ),
    says: /taken by another program; .*--ledger-port PORT/
  },
  {
    name: "npm run pay, other ports",
    play: () => program([join(root, "examples/pay.ts"), "--state", state]),
    says: new RegExp(`Facilitator  ${at}`),
    status: 0
  },
  {
    name: "reset while it runs",
    play: () => tollkeeper("reset", "--state", state, "--yes"),
    says: /a Tollkeeper runs over .*stop it first/
  },
  {
    name: "channels list beside it",
    play: () => tollkeeper("channels", "list", "--state", state),
    says: /\d+ of \d+ ready; required/,
    status: 0
  },
  {
    name: "settlements show of an unknown id beside it",
    play: () => tollkeeper("settlements", "show", "x", "--state", state),
    says: /no settlement has .*`tollkeeper settlements list`/
  },
  {
    name: "doctor beside it",
    play: () => tollkeeper("doctor", "--state", state),
    says: /ok +RPC 1 +answers/,
    status: 0
  },
  {
    name: "backup while it runs",
    play: () => tollkeeper("backup", "save", "b.tar", "--state", state),
    says: /b\.tar: \d+ bytes; .*restore/,
    status: 0
  },
  {
    name: "a foreign page asks the facilitator",
    play: () => answerOf(`${at}/supported`, { headers: { origin: "http://evil.example" } }),
    says: /pages of this origin are not allowed; .*allowed_origins/,
    status: 403
  },
  {
    name: "a name that was made to mean this machine",
    play: () => raw(port, ["GET /supported HTTP/1.1", "Host: evil.example", "Connection: close"]),
    says: /this host name is not allowed; .*allowed_hosts/,
    status: 403
  },
  {
    name: "a foreign page asks the friendbot",
    play: () =>
      answerOf(`http://127.0.0.1:${ledgerPort}/friendbot?addr=G`, { headers: { origin: "http://evil.example" } }),
    says: /pages of this origin may not call; .*allowed_origins/,
    status: 403
  },
  {
    name: "/metrics through a proxy",
    play: () => answerOf(`${at}/metrics`, { headers: { "x-forwarded-proto": "https" } }),
    says: /unauthorized/,
    status: 401
  },
  { name: "a head that does not end", play: slowHead, says: /let go after ([5-9]|10)(\.\d)? s/, status: 0 }
]

/** A start from a person's view: on a terminal made by `script`, stopped when it is ready. */
const onTerminal = async (): Promise<Outcome> => {
  const words = [node, "--disable-warning=ExperimentalWarning", cli, "start", "--state", inFolder("terminal")]
  const child = spawn("script", ["-qec", [...words, ...freePorts].join(" "), "/dev/null"], {
    cwd: folder,
    env: { ...process.env, DATABASE_URL: "" },
    stdio: ["pipe", "pipe", "pipe"]
  })
  let text = ""
  const ended = once(child, "exit")
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk
    // Ctrl+C, as its terminal sends it.
    if (text.includes("npm run pay") && !child.stdin.writableEnded) child.stdin.end("\u0003")
  })
  await ended
  const json = text.split(/\r?\n/).filter((line) => line.startsWith("{"))
  return json.length === 0 ? { status: 0, text } : { status: 1, text: `JSON on a terminal: ${json[0]}` }
}

const after: ReadonlyArray<Item> = [
  ...(process.platform === "linux"
    ? [
        {
          name: "a start on a terminal",
          play: onTerminal,
          says: /Try it, in another terminal: +npm run pay/,
          status: 0
        }
      ]
    : []),
  {
    name: "reset without a word of consent",
    play: () => tollkeeper("reset", "--state", state),
    says: /confirm with --yes/
  },
  {
    name: "reset, for a program",
    play: () => tollkeeper("reset", "--state", state, "--yes", "--json"),
    says: /^\{"deleted":true,"kept":\[\]\}$/,
    status: 0
  },
  {
    name: "reset of what is gone",
    play: () => tollkeeper("reset", "--state", state, "--yes"),
    says: /there is no .*state; nothing to delete/,
    status: 0
  }
]

let [played, errors] = [0, 0]
const play = async (items: ReadonlyArray<Item>) => {
  for (const { name, play, says, status = 1 } of values.paths ? [] : items) {
    const outcome = await play()
    const sentence = sentenceIn(outcome.text, says)
    const hasTrace = /\n\s+at .*:\d+:\d+\)?(\n|$)|Help requested/.test(outcome.text)
    const isRight = sentence !== undefined && !hasTrace && outcome.status === status
    played++
    if (!isRight) errors++
    console.log(`${isRight ? "ok    " : "FAILED"} ${name}`)
    console.log(`      ${(sentence ?? `(${outcome.status}) ${outcome.text.slice(-600)}`).slice(0, 400)}`)
  }
}

const means = { tollkeeper, inFolder, answerOf, startServing }
await play(before)
await play(unstarted(means))
const receiver = await startReceiver()
const running = await startServing([...own, ...allowing, ...receiver.settings], receiver.environment)
const ledgerUrl = `http://127.0.0.1:${ledgerPort}`
await play(beside)
await play(served(means, { at, banner: () => running.said(), origin, state }))
await play(short(means, { at, freePorts, ledgerUrl, receiver }))
const paths: Array<Path> = []
const walked = (path: Path) => {
  paths.push(path)
  printPath(path)
}
for (const path of await mail({ ...means, at, ledgerUrl, state })) walked(path)
await running.stop()
receiver.close()
await play(after)
if (chromiumPath() === undefined) console.log(`paths to a page are left out: ${howToGetOne}`)
else if (existsSync(join(root, ".git"))) walked(await newcomer(inFolder("clone")))
rmSync(folder, { recursive: true, force: true })
const broken = paths.filter(({ failure }) => failure !== undefined).length
console.log(
  `${played - errors} of ${played} give a sentence with what to do; ${paths.length - broken} of ${paths.length} paths`
)
process.exitCode = errors + broken === 0 ? 0 : 1
