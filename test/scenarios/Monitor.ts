// A real Prometheus that scrapes the replicas and evaluates the shipped rules: their expressions unchanged, their `for`
// divided by `pace`, since no scene can wait ten minutes. Without the program on PATH alerts are not checked; the
// caller then gets `undefined`.
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { delimiter, join } from "node:path"
import process from "node:process"
import { setTimeout as sleep } from "node:timers/promises"
import { parse, stringify } from "yaml"
import { freePort } from "../support/freePort.ts"

export const prometheusProgram = (): string | undefined =>
  (process.env["PATH"] ?? "")
    .split(delimiter)
    .map((folder) => join(folder, "prometheus"))
    .find((file) => existsSync(file))

export interface MonitorOptions {
  readonly program: string
  readonly folder: string
  /** The shipped file of rules. */
  readonly rules: string
  readonly pace: number
  readonly targets: ReadonlyArray<string>
  readonly operatorKey: string
}

/** An active alert: `pending` until its `for` has passed. */
export interface ActiveAlert {
  readonly state: "pending" | "firing"
  readonly labels: Readonly<Record<string, string>>
}

/** Seconds of a rule's `for`, such as 5m. */
const secondsOf = (text: string): number => Number.parseInt(text) * (text.endsWith("m") ? 60 : 1)

/** The shipped rules with shorter times. */
const paced = (rules: string, pace: number): string => {
  const file = parse(readFileSync(rules, "utf8"))
  for (const group of file.groups)
    for (const rule of group.rules) rule.for = `${Math.ceil(secondsOf(rule.for) / pace)}s`
  return stringify(file)
}

/** A scrape of a replica with a silent database takes two seconds. */
const scrapeInterval = "3s"

export class Monitor {
  readonly #child: ChildProcess
  readonly #url: string
  /** Alerts that have fired so far. */
  readonly fired = new Set<string>()

  constructor(child: ChildProcess, url: string) {
    this.#child = child
    this.#url = url
  }

  readonly activeAlerts = async (): Promise<ReadonlyArray<ActiveAlert>> => {
    const answer: any = await (await fetch(`${this.#url}/api/v1/alerts`)).json()
    const all = answer.data.alerts as ReadonlyArray<ActiveAlert>
    for (const { labels, state } of all) if (state === "firing") this.fired.add(labels["alertname"]!)
    return all
  }

  /** The value of an expression's first series; undefined without a series. */
  readonly value = async (expression: string): Promise<number | undefined> => {
    const query = new URLSearchParams({ query: expression })
    const answer: any = await (await fetch(`${this.#url}/api/v1/query?${query}`)).json()
    const value = answer.data.result[0]?.value[1]
    return value === undefined ? undefined : Number(value)
  }

  readonly stop = async (): Promise<void> => {
    const ended = new Promise<void>((resolve) => this.#child.once("exit", () => resolve()))
    this.#child.kill("SIGTERM")
    await ended
  }
}

export const startMonitor = async (options: MonitorOptions): Promise<Monitor> => {
  const folder = join(options.folder, "prometheus")
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, "alerts.yml"), paced(options.rules, options.pace))
  const config = {
    global: { scrape_interval: scrapeInterval, scrape_timeout: scrapeInterval, evaluation_interval: "1s" },
    rule_files: ["alerts.yml"],
    scrape_configs: [
      {
        job_name: "tollkeeper",
        authorization: { credentials: options.operatorKey },
        static_configs: [{ targets: options.targets }]
      }
    ]
  }
  writeFileSync(join(folder, "prometheus.yml"), stringify(config))
  const listen = `127.0.0.1:${await freePort()}`
  const child = spawn(
    options.program,
    [
      `--config.file=${join(folder, "prometheus.yml")}`,
      `--storage.tsdb.path=${join(folder, "data")}`,
      `--web.listen-address=${listen}`,
      "--log.level=warn"
    ],
    { cwd: folder, stdio: ["ignore", "ignore", "inherit"] }
  )
  const monitor = new Monitor(child, `http://${listen}`)
  const scraped = () => monitor.value("sum(up)").catch(() => undefined)
  for (let reads = 0; ((await scraped()) ?? 0) < options.targets.length; reads++) {
    if (reads > 600 || child.exitCode !== null) throw new Error("Prometheus does not scrape the replicas")
    await sleep(100)
  }
  return monitor
}
