// Starts the program from a fresh checkout. Plain JavaScript without dependencies, because it runs before any are
// installed. It installs the lockfile's packages if they differ from the installed ones, and finds a Node that runs
// TypeScript sources: the pinned one that npm installed, otherwise the current one. A failure is one sentence and exit
// code 1.
import { spawn, spawnSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { constants } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { systemIssue, underParent, whileOrphaned } from "./system.mjs"

/** The folder of the project, without a slash at its end. */
export const root = fileURLToPath(new URL("..", import.meta.url)).replace(/[\\/]$/, "")

/** A plain line on a terminal, a JSON line otherwise: the format of the program's own log. */
const say = (level, sentence) =>
  console.error(
    process.stderr.isTTY
      ? sentence
      : JSON.stringify({ message: sentence, level, timestamp: new Date().toISOString(), annotations: {} })
  )

const fail = (sentence) => {
  say("ERROR", `tollkeeper: ${sentence}`)
  process.exit(1)
}

const versionOf = (version) => version.split(".").map(Number)

const isAtLeast = (version, [major, minor]) => {
  const [ownMajor, ownMinor] = versionOf(version)
  return ownMajor > major || (ownMajor === major && ownMinor >= minor)
}

/** Ends the process on an unsupported system, and when this Node is too old even to fetch a newer one. */
export const refuseOldNode = () => {
  const error = systemIssue(process.platform)
  if (error !== undefined) fail(`${error}.`)
  if (!isAtLeast(process.versions.node, [20, 0]))
    fail(`Node ${process.versions.node} is too old; install Node 24, or any from 20 on, and try again.`)
}

const packagesOf = (file) => {
  try {
    return JSON.parse(readFileSync(file, "utf8")).packages
  } catch {
    return undefined
  }
}

/**
 * True when the packages below `folder` match its lockfile. Optional packages may be missing: they are for other
 * machines. npm writes its own record last, so an interrupted installation counts as none. `lenient` allows packages
 * beyond the lockfile, which then are builds for this machine.
 */
export const isInstalled = (folder, { lenient = false } = {}) => {
  const required = packagesOf(join(folder, "package-lock.json"))
  const present = packagesOf(join(folder, "node_modules", ".package-lock.json"))
  if (required === undefined || present === undefined) return false
  const same = (path) =>
    required[path]?.version === present[path]?.version && required[path]?.integrity === present[path]?.integrity
  return (
    Object.entries(required).every(
      ([path, entry]) => path === "" || (entry.optional === true && present[path] === undefined) || same(path)
    ) &&
    (lenient || Object.keys(present).every((path) => required[path] !== undefined))
  )
}

/**
 * Installs the packages of `folder` unless they are present. Prints a message first, since it may take a minute.
 * `lenient` also follows the lockfile, but tolerates a registry that lacks a program's builds for other machines, which
 * `npm ci` does not.
 */
export const install = (folder, what, { lenient = false } = {}) => {
  if (isInstalled(folder, { lenient })) return
  const words = lenient ? ["install", "--no-save"] : ["ci"]
  say("INFO", `Installing ${what} (npm ${words.join(" ")}), which is needed once and takes about half a minute …`)
  const startedAt = Date.now()
  const npm = process.env.npm_execpath
  const [command, ...first] = npm !== undefined && /\.c?js$/.test(npm) ? [process.execPath, npm] : ["npm"]
  // No install scripts run, because no package of Tollkeeper needs one.
  const flags = ["--ignore-scripts", "--loglevel=error", "--no-fund", "--no-audit"]
  const { error, status } = spawnSync(command, [...first, ...words, ...flags], {
    cwd: folder,
    // npm's output must not mix with the program's own.
    stdio: ["ignore", 2, 2]
  })
  if (error !== undefined) fail(`npm could not be started (${error.message}); install npm, or put it on the PATH.`)
  if (status !== 0) fail(`npm ${words[0]} ended with ${status}; the lines above say why. Fix that and try again.`)
  say("INFO", `Installed in ${Math.round((Date.now() - startedAt) / 1_000)} s.`)
}

/** A Node that runs TypeScript by stripping its types: 24 from the installed packages, else this one from 22.19 on. */
export const findNode = () => {
  const build = join(`node-${process.platform}-${process.arch}`, "bin", "node")
  // In an installed package, npm may have put it next to the program.
  const installed = [join(root, "node_modules", build), join(root, "..", build)].find((file) => existsSync(file))
  if (installed !== undefined) return installed
  if (isAtLeast(process.versions.node, [22, 19])) return process.execPath
  return fail(
    `Node ${process.versions.node} cannot run it, and npm's Node 24 is not installed (optional, only for Linux ` +
      "x64): install Node 24, or 22.19 and newer, or run npm ci without --omit=optional."
  )
}

/** True if this process has to watch the program that npm runs; false if the program detects npm's exit itself. */
const isUnderNpm = process.env.npm_lifecycle_event !== undefined

/**
 * Runs our own program in place of this process (exec), where Node supports it, so that no parent process is left. The
 * program itself ends when npm does.
 */
export const becomeOwn = (command, args, env = process.env) => {
  if (typeof process.execve !== "function") return become(command, args, { env })
  process.execve(command, [command, ...args], isUnderNpm ? underParent(env) : env)
}

/**
 * Runs a program as a child with the same streams, forwards signals, and exits with its status. A terminal already
 * sends an interrupt to both processes, so we do not forward that one. Under npm, the program is also stopped when npm
 * ends, because a SIGKILL of npm would not reach it.
 */
export const become = (command, args, options) => {
  const child = spawn(command, args, { stdio: "inherit", ...options })
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => {
      if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal)
    })
  }
  if (isUnderNpm) whileOrphaned(process.ppid, () => child.kill("SIGTERM"))
  child.on("error", (error) => fail(`${command} could not be started: ${error.message}`))
  child.on("exit", (status, signal) => process.exit(signal === null ? status : 128 + constants.signals[signal]))
}
