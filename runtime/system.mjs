// Supported systems, checked before anything is opened, and settings of the C library. Every test runs on Linux. macOS
// should work but is untested. Windows is refused: a signal ends a process there immediately, without a graceful stop,
// and a folder's mode does not restrict it to one user, on which the database and the keys of the state folder depend.
import process from "node:process"

/** Why this system is unsupported, and what to do; undefined for a supported one. */
export const systemIssue = (platform) => {
  if (platform === "linux" || platform === "darwin") return undefined
  return platform === "win32"
    ? "Windows itself is not supported: a stop would cut payments off, and its folders cannot be closed to others by " +
        "mode; run it in WSL 2 (`wsl --install`), where it is Linux"
    : `${platform} is not supported; run it on Linux, or on macOS`
}

/** Why this Node cannot run the program; undefined when it can. */
export const nodeIssue = (version) => {
  const [major, minor] = version.split(".").map(Number)
  return major > 22 || (major === 22 && minor >= 19)
    ? undefined
    : `Node ${version} cannot run this program: it needs Node 24, or 22.19 and newer (\`npm start\` and ` +
        "`npm run tollkeeper` bring their own on Linux x64)"
}

/** Whether the tests run on this system; a start on another warns once. */
export const isTested = (platform) => platform === "linux"

/**
 * malloc settings for a program that needs much more memory at the start than later: return free memory. glibc's
 * default keeps the arena of each thread that compiled, a hundred megabytes for the embedded database's.
 */
const givingBack = { MALLOC_MMAP_THRESHOLD_: "131072", MALLOC_TRIM_THRESHOLD_: "131072" }

/** The standalone ledger is a process of a user's tests: its threads share one arena. */
const sharing = { MALLOC_ARENA_MAX: "1" }

/** The environment of a command on this system; variables that are already set win. */
export const environmentOf = (command, environment, platform) => {
  if (platform !== "linux") return environment
  if (command === "start") return { ...givingBack, ...environment }
  return command === "ledger" ? { ...sharing, ...environment } : environment
}

/** Whether an environment lacks one of the required variables. */
export const lacks = (environment, required) => Object.keys(required).some((name) => environment[name] === undefined)

const parentVariable = "TOLLKEEPER_PARENT"
/** How often a program under npm checks that npm still runs, in milliseconds. */
const parentInterval = 500

/** Calls back periodically once this process's parent is not `parent` any more; does not keep the process alive. */
export const whileOrphaned = (parent, call) => {
  setInterval(() => process.ppid !== parent && call(), parentInterval).unref()
}

/** The environment of a program that `endWithParent` ends together with this process's parent. */
export const underParent = (environment) => ({ ...environment, [parentVariable]: String(process.ppid) })

/** Stops this process when the parent in its environment has ended; for programs under npm. */
export const endWithParent = () => {
  const parent = Number(process.env[parentVariable] ?? 0)
  delete process.env[parentVariable]
  if (parent !== 0) whileOrphaned(parent, () => process.kill(process.pid, "SIGTERM"))
}
