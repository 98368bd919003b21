// `npm run scenarios`: two replicas as real processes, supervised like compose, over one PostgreSQL and one ledger,
// with the shipped profile and alerts and buyers that pay all the time. Scenes from an operator's life, a line each
// with its figures and the alert that fired. Afterwards every payment has settled exactly once, to the atom, nothing is
// pending, and the audit agrees. `--only SCENE,SCENE`, `--seed N`, `--clients N`; `--pace N` divides the time that an
// alert's condition must hold (20), 1 uses the shipped times; `--stop-max N` is for a machine too busy to stop anything
// in 5 s. The exit code is 0 if all of this holds.
import process from "node:process"
import { parseArgs } from "node:util"
import { Alerts } from "./Alerts.ts"
import { prometheusProgram } from "./Monitor.ts"
import { scenes } from "./scenes.ts"
import { World } from "./World.ts"

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "" },
    seed: { type: "string", default: "1" },
    clients: { type: "string", default: "6" },
    pace: { type: "string", default: "20" },
    "stop-max": { type: "string", default: "5" },
    "without-alerts": { type: "boolean", default: false }
  }
})
const only = values.only.split(",").filter((name) => name !== "")
const stranger = only.find((name) => !scenes.some((scene) => scene.name === name))
if (stranger !== undefined) {
  console.log(`there is no scene ${stranger}; there are ${scenes.map(({ name }) => name).join(", ")}`)
  process.exit(2)
}
const prometheus = values["without-alerts"] ? undefined : prometheusProgram()
if (prometheus === undefined && !values["without-alerts"]) {
  console.log("no prometheus on PATH, which evaluates the alerts: install it, or run --without-alerts")
  process.exit(2)
}

const [seed, clients, pace] = [values.seed, values.clients, values.pace].map(Number) as [number, number, number]
const stopMillisMax = Number(values["stop-max"]) * 1_000
const started = performance.now()
const issues: Array<string> = []
const world = await World.open({ seed, clients, prometheus, pace, stopMillisMax })
const chosen = scenes.filter(({ name }) => only.length === 0 || only.includes(name))
let played = 0
try {
  const alerts = new Alerts(world.monitor)
  await alerts.calm()
  for (const { name, play } of chosen) {
    const since = performance.now()
    const figures = await play({ world, alerts })
    played += 1
    console.log(`${name.padEnd(9)} ${figures} (${((performance.now() - since) / 1_000).toFixed(0)} s)`)
  }
  await world.traffic.stop()
  issues.push(...(await world.traffic.issues()), ...(await world.issues()))
} catch (error) {
  issues.push(error instanceof Error ? (error.stack ?? error.message) : String(error))
  const isReported = (line: string) => !line.includes('"level":"INFO"')
  for (const { log, name } of world.replicas)
    console.log(`${name} logged last:\n${log.split("\n").filter(isReported).slice(-20).join("\n")}`)
} finally {
  world.traffic.quit()
  await world.close()
}
for (const issue of issues) console.log(`FAILED: ${issue}`)
const { paid, unanswered } = world.traffic
console.log(
  `${played} of ${chosen.length} scenes in ${((performance.now() - started) / 1_000).toFixed(0)} s, seed ${seed}: ` +
    `${paid.length} payments settled, each once, ${unanswered} answers lost and brought again, ${issues.length} issues`
)
process.exit(issues.length === 0 ? 0 : 1)
