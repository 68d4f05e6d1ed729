"""Locust's page in a real browser, as a person uses it."""

from __future__ import annotations

import time
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --disable-dev-shm-usage --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync --window-size=1280,1000"
)
CELLS = "return [...document.querySelectorAll('tbody tr')].map(row => [...row.cells].map(cell => cell.innerText))"
BUTTON = "//button[translate(normalize-space(.), 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz')='{}']"


def open_browser(chromium: str, chromedriver: str) -> Any:
    """A Chromium without a window, with a profile of its own."""
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in FLAGS.split():
        options.add_argument(flag)
    return webdriver.Chrome(options=options, service=Service(chromedriver))


class Page:
    """The page of one Locust process."""

    def __init__(self, browser: Any, port: int) -> None:
        self.browser = browser
        self.url = f"http://127.0.0.1:{port}/"

    def open(self) -> None:
        """Load it as soon as it is there."""
        self.until(lambda: self.browser.get(self.url) or self.buttons("start"))

    def until(self, condition: Any, timeout: float = 60.0) -> Any:
        """Wait until `condition` gives something; the page may change while it is looked at."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                if result := condition():
                    return result
            except WebDriverException:
                result = None
            assert time.monotonic() < deadline, f"did not come true; the page reads: {self.text()}"
            time.sleep(0.1)

    def text(self) -> str:
        return str(self.browser.find_element(By.TAG_NAME, "body").text)

    def buttons(self, name: str) -> list[Any]:
        return [one for one in self.browser.find_elements(By.XPATH, BUTTON.format(name)) if one.is_displayed()]

    def press(self, name: str) -> None:
        """Press the button (or the tab) called `name` when it is there; of several, the last, which is on top.

        By script: a form that is still unfolding moves from under a pointer.
        """
        found = self.until(lambda: self.buttons(name)[-1:])
        self.browser.execute_script("arguments[0].click()", *found)

    def write(self, field: str, text: object) -> None:
        """Put `text` in place of what the text field holds."""
        found = self.until(lambda: [e for e in self.browser.find_elements(By.NAME, field) if e.is_displayed()])[-1]
        found.send_keys(Keys.CONTROL, "a")
        found.send_keys(Keys.DELETE, str(text))

    def value(self, field: str) -> str:
        """What the text field holds."""
        return str(self.browser.find_elements(By.NAME, field)[-1].get_attribute("value"))

    def choose(self, field: str, choice: str) -> list[str]:
        """Choose in the dropdown; returns all choices."""
        select = Select(self.browser.find_elements(By.NAME, field)[-1])
        select.select_by_visible_text(choice)
        return [option.text for option in select.options]

    def texts(self, selector: str) -> list[str]:
        """What stands in each element that the CSS selector finds."""
        return [str(found.text) for found in self.browser.find_elements(By.CSS_SELECTOR, selector)]

    def resize(self, width: int, height: int) -> None:
        """As on a device of that size, in CSS pixels."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def alerts(self) -> str:
        """What stands in the form's coloured boxes."""
        return "\n".join(box.text for box in self.browser.find_elements(By.CSS_SELECTOR, "[role=alert]"))

    def header(self) -> list[str]:
        """Names and values in the bar at the top, as they stand: Status, RUNNING, Users, 2, ..."""
        return str(self.browser.find_element(By.TAG_NAME, "header").text).splitlines()

    def figures(self) -> dict[str, list[str]]:
        """The table of the open tab: first cell -> the others."""
        return {row[0]: row[1:] for row in self.browser.execute_script(CELLS)}
