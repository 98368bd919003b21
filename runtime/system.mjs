// On which systems the program runs, said before anything is opened, and what it asks of them. Linux is what every test
// runs on. macOS has all that the program stands on, but no machine here has run it there. Windows is refused: it can
// neither be told to stop in good order (a signal ends a process there at once), nor does it keep a folder for one user
// by its mode, on which the database and the keys of the state folder rest.
import process from "node:process"

/** Why the program does not run on this system, and what to do; undefined where it does. */
export const systemIssue = (platform) => {
  if (platform === "linux" || platform === "darwin") return undefined
  return platform === "win32"
    ? "Windows itself is not supported: a stop would cut payments off, and its folders cannot be closed to others by " +
        "mode; run it in WSL 2 (`wsl --install`), where it is Linux"
    : `${platform} is not supported; run it on Linux, or on macOS`
}

/** Whether the system is one that the tests run on; the other is told so once, at a start. */
export const isTested = (platform) => platform === "linux"

/**
 * What the C library is told about memory, for a program that a start makes much larger than it stays: give back what
 * is free. By itself it keeps what each thread that compiled took, a hundred megabytes of the embedded database's.
 */
const givingBack = { MALLOC_MMAP_THRESHOLD_: "131072", MALLOC_TRIM_THRESHOLD_: "131072" }

/** The ledger by itself is a process of somebody's tests: its threads share one place. */
const sharing = { MALLOC_ARENA_MAX: "1" }

/** The environment of a command on this system; what is set already stands. */
export const environmentOf = (command, environment, platform) => {
  if (platform !== "linux") return environment
  if (command === "start") return { ...givingBack, ...environment }
  return command === "ledger" ? { ...sharing, ...environment } : environment
}

/** Whether such an environment is another one than this. */
export const lacks = (environment, required) => Object.keys(required).some((name) => environment[name] === undefined)

const parentVariable = "TOLLKEEPER_PARENT"
/** How often a program under npm looks whether npm is still there, in milliseconds. */
const parentInterval = 500

/** Calls again and again while this process's parent is another one than `parent`; keeps no process alive. */
export const whileOrphaned = (parent, call) => {
  setInterval(() => process.ppid !== parent && call(), parentInterval).unref()
}

/** The environment of a program that `endWithParent` ends when this process's parent is gone. */
export const underParent = (environment) => ({ ...environment, [parentVariable]: String(process.ppid) })

/** Asks this process to stop when the parent is gone that its environment names; for what npm runs. */
export const endWithParent = () => {
  const parent = Number(process.env[parentVariable] ?? 0)
  delete process.env[parentVariable]
  if (parent !== 0) whileOrphaned(parent, () => process.kill(process.pid, "SIGTERM"))
}
