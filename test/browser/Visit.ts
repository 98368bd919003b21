// A browser that opens a facilitator's pages for tests: it collects forbidden events (violations of the page's policy,
// script errors, requests to other origins), runs axe's accessibility checks, and takes screenshots into the folder
// that TOLLKEEPER_TEST_SCREENS names.
import { mkdirSync, readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import process from "node:process"
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core"
import { chromiumPath } from "./chromium.ts"

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")
const screens = process.env["TOLLKEEPER_TEST_SCREENS"]

export const launch = (): Promise<Browser> =>
  chromium.launch({ executablePath: chromiumPath()!, args: ["--no-sandbox", "--disable-dev-shm-usage"] })

export interface Read {
  readonly width: number
  readonly theme: "light" | "dark"
  /** The viewer's time zone; the machine's when absent. */
  readonly zone?: string
}

export class Visit {
  readonly page: Page
  readonly context: BrowserContext
  /** Events that must never happen on a page. */
  readonly issues: Array<string> = []
  readonly #url: string

  private constructor(context: BrowserContext, page: Page, url: string) {
    this.context = context
    this.page = page
    this.#url = url
    page.on("pageerror", (error) => this.issues.push(`error: ${error.message}`))
    page.on("request", (request) => {
      if (!request.url().startsWith(url) && !request.url().startsWith("data:") && !request.url().startsWith("blob:"))
        this.issues.push(`asked elsewhere: ${request.url()}`)
    })
    page.on("console", (message) => {
      if (/Content Security Policy|Trusted Type/i.test(message.text())) this.issues.push(message.text())
    })
  }

  static async open(browser: Browser, url: string, read: Read = { width: 1_280, theme: "light" }): Promise<Visit> {
    const context = await browser.newContext({
      viewport: { width: read.width, height: 900 },
      colorScheme: read.theme,
      reducedMotion: "reduce",
      ...(read.zone === undefined ? {} : { timezoneId: read.zone })
    })
    const page = await context.newPage()
    page.setDefaultTimeout(30_000)
    return new Visit(context, page, url)
  }

  async go(path: string): Promise<void> {
    await this.page.goto(this.#url + path)
  }

  /** A screenshot of the whole page, if screenshots are enabled. */
  async picture(name: string): Promise<void> {
    if (screens === undefined) return
    mkdirSync(screens, { recursive: true })
    await this.page.screenshot({ path: join(screens, `${name}.png`), fullPage: true })
  }

  /** axe's violations in the current page. It runs in an isolated world, which the policy does not restrict. */
  async axe(): Promise<ReadonlyArray<string>> {
    const session = await this.context.newCDPSession(this.page)
    const { frameTree } = await session.send("Page.getFrameTree")
    const { executionContextId } = await session.send("Page.createIsolatedWorld", { frameId: frameTree.frame.id })
    const run = async (expression: string) =>
      (await session.send("Runtime.evaluate", {
        expression,
        contextId: executionContextId,
        awaitPromise: true,
        returnByValue: true
      })) as { readonly result: { readonly value: any }; readonly exceptionDetails?: unknown }
    await run(axe)
    const { result } = await run(
      "axe.run().then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]))"
    )
    await session.detach()
    const found = result.value as ReadonlyArray<readonly [id: string, html: ReadonlyArray<string>]>
    return found.map(([id, html]) => `${id}: ${html.join(" | ")}`)
  }

  async close(): Promise<void> {
    await this.context.close()
  }
}
