import { type Html, html } from "./html.ts";

/** Without JavaScript the form would do nothing, so the script shows it. No field has a name that could be sent. */
export function renderTryIt(): Html {
  return html`<section id="try-it" class="part depth-1">
<h1>Try it</h1>
<p class="lead">Send a request from your browser to this service. Your secret goes nowhere else, and is not kept.</p>
<p id="without-script" class="notice">The form needs JavaScript. The <a href="../docs#in-one-minute">commands of the guide</a> do the same.</p>
<form id="try" class="row" autocomplete="off" hidden>
<div class="prose form">
<label class="field">Operation <select id="operation"></select></label>
<p id="endpoint" class="endpoint"></p>
<div id="body-fields">
<div class="pair">
<label class="field">Example <select id="example"></select></label>
<label class="field">Format <select id="type"></select></label>
</div>
<label class="field">Body <textarea id="body" rows="9" spellcheck="false"></textarea></label>
</div>
<div id="parameters"></div>
<label class="field">Secret <input id="secret" class="code" type="password" autocomplete="off" spellcheck="false" required><small>Sent as <code>Authorization: Bearer</code>, which does the same as the path.</small></label>
<label class="check" id="dry-run-field"><input id="dry-run" type="checkbox" checked> <span>Dry run: check everything, store nothing</span></label>
<p class="actions"><button class="button button-primary" id="send">Send</button> <span class="small soft" id="note" role="status"></span></p>
</div>
<div class="side">
<figure class="code"><figcaption>As curl</figcaption><pre tabindex="0"><code id="curl"></code></pre></figure>
<div id="answer" role="status"></div>
</div>
</form>
</section>
`;
}
